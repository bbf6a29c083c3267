// The page: files as tabs, and for each file what suits it.
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get, login } from './api.js';
import { Bytes } from './bytes.js';
import { Columns } from './columns.js';
import { Convert } from './convert.js';
import { Matrix } from './matrix.js';
import { Fault, Tabs, count, html } from './parts.js';
import { Bits, Gallery, Parts } from './pictures.js';
import { Table } from './table.js';

function panels(file) {
  if (file.error) return [['Bytes', Bytes]];
  const found = [];
  const isMatrix = file.form === 'dense' || file.form === 'sparse';
  if (!file.container && isMatrix) found.push(['Matrix', Matrix]);
  if (!file.container && file.form !== 'sparse') found.push(['Table', Table]);
  if (!file.container && file.columns.some((column) => column.picture)) found.push(['Gallery', Gallery]);
  if (file.kind && !file.container) found.push(['Structure', Bits]);
  if (!file.container) found.push([isMatrix ? 'Figures' : 'Columns', Columns]);
  found.push(['Bytes', Bytes], ['Parts', Parts]);
  if (!file.container) found.push(['Convert', Convert]);
  return found;
}

function summary(file) {
  if (file.error) return file.error;
  const format = file.dialect ? `${file.format}:${file.dialect}` : file.format;
  const size = file.form === 'dense' || file.form === 'sparse'
    ? `${file.form} matrix, ${count(file.rows)} x ${count(file.cols)}`
    : `${file.shape}, ${file.rows == null ? '' : `${count(file.rows)} rows, `}${count(file.column_count)} columns`;
  return `${format} · ${file.container ? `${file.members.length} members` : size} · ${count(file.bytes)} bytes`;
}

function Page({ about }) {
  const [chosen, setChosen] = useState(0);
  const [tab, setTab] = useState({});
  const [theme, setTheme] = useState(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
  useEffect(() => { document.documentElement.dataset.theme = theme; }, [theme]);
  const file = about.files[chosen];
  const all = panels(file);
  const own = Math.min(tab[chosen] ?? 0, all.length - 1);
  const [title, Panel] = all[own];
  useEffect(() => { document.title = `${file.name} – Pentaglot`; }, [chosen]);
  return html`<header class="head">
      <h1>Pentaglot</h1>
      <${Tabs} id="file" label="Files" names=${about.files.map((one) => one.name)} chosen=${chosen} choose=${setChosen} />
      <button class="theme" aria-label="Dark or light" onClick=${() => setTheme(theme === 'dark' ? 'light' : 'dark')}>${theme === 'dark' ? 'Light' : 'Dark'}</button>
    </header>
    <p class=${file.error ? 'fault' : 'summary'} role=${file.error ? 'alert' : undefined}>${summary(file)}</p>
    <${Tabs} id="panel" label="Views" names=${all.map(([name]) => name)} chosen=${own} choose=${(index) => setTab({ ...tab, [chosen]: index })} />
    <main role="tabpanel" aria-labelledby=${`panel-${own}`}>
      <${Panel} key=${`${chosen} ${title}`} file=${file} index=${chosen} targets=${about.targets} readOnly=${about.read_only} filter=${about.filter} theme=${theme} />
    </main>`;
}

const place = document.getElementById('page');
place.replaceChildren();
try {
  await login();
  render(html`<${Page} about=${await get('/api/files')} />`, place);
} catch (error) {
  render(html`<${Fault} text=${error.message} />`, place);
}
