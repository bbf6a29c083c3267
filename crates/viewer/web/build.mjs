// Builds the page into ../dist (or the folder that is named): no file depends on where or when it is built.
import { build } from 'esbuild';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, '../dist'));
mkdirSync(out, { recursive: true });
await build({
  absWorkingDir: here,
  entryPoints: ['src/page.js', 'src/page.css'],
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'warning',
});
cpSync(join(here, 'src/index.html'), join(out, 'index.html'));
