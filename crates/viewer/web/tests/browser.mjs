// The page in a real browser: PENTAGLOT is the command, CHROMIUM the browser, EXAMPLES the example data, ARTEFACTS the folder
// for screenshots.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../../..');
const command = process.env.PENTAGLOT;
const artefacts = process.env.ARTEFACTS ?? mkdtempSync(join(tmpdir(), 'artefacts-'));
mkdirSync(artefacts, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'view-'));
const examples = process.env.EXAMPLES ?? join(root, 'examples/data');
const example = (name) => join(examples, name);

/** A file in the folder. */
function file(name, text) {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

/** Starts the server in the folder; gives its address, its port and what ends it. */
async function serve(...words) {
  const server = spawn(command, ['view', '--no-open', ...words], { cwd: folder });
  let errors = '';
  server.stderr.on('data', (text) => { errors += text; });
  const address = await new Promise((done, fail) => {
    let text = '';
    server.stdout.on('data', (more) => { text += more; if (text.includes('\n')) done(text.trim()); });
    server.on('exit', () => fail(new Error(`the server ended: ${errors}`)));
  });
  return { address, port: Number(new URL(address).port), code: new URL(address).hash.slice(1), end: () => { server.removeAllListeners('exit'); server.kill('SIGKILL'); } };
}

/** A request that no browser would send. */
function raw(port, { method = 'GET', path = '/', headers = {}, body } = {}) {
  return new Promise((done, fail) => {
    const sent = request({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => done({ status: answer.statusCode, headers: answer.headers, text: Buffer.concat(parts).toString() }));
    });
    sent.on('error', fail);
    sent.end(body);
  });
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
let passed = 0;

/** Opens the page on these files and does what the test says. Whatever the browser refuses or reports as an error fails it. */
async function test(name, words, act, options = {}) {
  const server = await serve(...words);
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const wrong = [];
  page.on('console', (message) => { if (message.type() === 'error' && !message.text().includes('status of 4') && !message.text().includes('status of 5')) wrong.push(message.text()); });
  page.on('pageerror', (error) => wrong.push(error.message));
  page.on('request', (sent) => { if (!sent.url().startsWith(`http://127.0.0.1:${server.port}/`) && !sent.url().startsWith('blob:')) wrong.push(`asks ${sent.url()}`); });
  try {
    page.setDefaultTimeout(20000);
    await page.goto(server.address);
    await act(page, server);
    assert.deepEqual(wrong, [], 'the browser reports no error');
    passed += 1;
    console.log(`ok: ${name}`);
  } catch (error) {
    console.log(`FAILED: ${name}`);
    throw error;
  } finally {
    await page.screenshot({ path: join(artefacts, `${name.replaceAll(/[^a-z0-9]+/gi, '-')}.png`) });
    await context.close();
    server.end();
  }
}

const tab = (page, name) => page.getByRole('tab', { name, exact: true }).click();
const cells = (page) => page.locator('regular-table tbody td');
const cell = (page, text) => page.locator('regular-table tbody td', { hasText: text });

await test('opens a table, and the code works once', [example('ticks.bson')], async (page, server) => {
  await cell(page, 'AAPL').first().waitFor();
  assert.equal(await page.evaluate(() => location.hash), '', 'the code is gone from the address');
  assert.match(await page.locator('.summary').textContent(), /bsondf.*240 rows/);
  assert.deepEqual(await page.context().cookies(), []);
  const again = await raw(server.port, { method: 'POST', path: '/api/login', headers: { Host: `127.0.0.1:${server.port}` }, body: JSON.stringify({ code: server.code }) });
  assert.equal(again.status, 403);
  assert.ok((await page.locator('.missing').count()) > 0, 'missing values look missing');
}, { viewport: { width: 1920, height: 1080 } });

const many = file('many.csv', `id,square,word\n${Array.from({ length: 200000 }, (_, id) => `${id},${(id * 7919) % 200003},w${id % 10}`).join('\n')}\n`);
await test('scrolls to the last row, sorts and filters', [many], async (page) => {
  await page.getByRole('status').filter({ hasText: '200,000 rows' }).waitFor();
  await page.locator('input[name=row]').fill('199999');
  await page.locator('input[name=row]').press('Enter');
  await page.locator('regular-table tbody th', { hasText: '199,999' }).waitFor();
  await page.locator('regular-table thead th', { hasText: 'square' }).click();
  await cell(page, /^0$/).first().waitFor();
  assert.equal(await page.locator('regular-table thead th[aria-sort=ascending]').count(), 1);
  const first = async () => (await cells(page).nth(1).textContent()).trim();
  await page.waitForFunction(() => document.querySelectorAll('regular-table tbody td')[1]?.textContent === '0');
  await page.locator('regular-table thead th', { hasText: 'square' }).click();
  await page.waitForFunction(() => document.querySelectorAll('regular-table tbody td')[1]?.textContent === '200002');
  assert.equal(await first(), '200002');
  await page.locator('input[name=filter]').fill("word = 'w3' and id < 100");
  await page.locator('input[name=filter]').press('Enter');
  await page.getByRole('status').filter({ hasText: /^10 rows/ }).waitFor();
  await page.locator('input[name=filter]').fill('nothing > 1');
  await page.locator('input[name=filter]').press('Enter');
  await page.getByRole('alert').filter({ hasText: 'there is no column' }).waitFor();
});

await test('works with the keyboard alone', [example('ticks.bson'), example('ratings.mtx')], async (page) => {
  await cell(page, 'AAPL').first().waitFor();
  await page.locator('regular-table').focus();
  for (const key of ['ArrowDown', 'ArrowDown', 'ArrowRight', 'ArrowRight']) await page.keyboard.press(key);
  await page.waitForFunction(() => document.querySelector('td.chosen') !== null);
  await page.keyboard.press('Control+End');
  await page.locator('regular-table tbody th', { hasText: '239' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('tab', { name: 'Table' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('.panel dl').first().waitFor();
  await page.getByRole('tab', { name: 'ticks.bson' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.locator('canvas').waitFor();
});

await test('columns have figures and histograms', [example('ticks.bson')], async (page) => {
  await tab(page, 'Columns');
  const price = page.getByRole('article', { name: 'price' });
  await price.locator('dl').waitFor();
  assert.match(await price.textContent(), /distinct30/);
  assert.ok((await price.locator('svg rect').count()) > 1);
}, { viewport: { width: 1024, height: 768 }, colorScheme: 'dark' });

const entries = Array.from({ length: 3000 }, (_, at) => `${(at * 37) % 1000 + 1} ${(at * 91) % 1000 + 1} ${at + 1}`);
const matrix = file('big.mtx', `%%MatrixMarket matrix coordinate real general\n1000 1000 ${entries.length}\n${entries.join('\n')}\n`);
await test('a spy plot zooms down to single entries', [matrix], async (page) => {
  await page.getByRole('status').filter({ hasText: 'rows 0 to 1,000' }).waitFor();
  const drawn = () => page.evaluate(() => {
    const canvas = document.querySelector('canvas');
    const data = canvas.getContext('2d').getImageData(80, 40, canvas.width - 90, canvas.height - 50).data;
    let different = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] !== 255) different += 1;
    return different;
  });
  await page.waitForFunction(() => document.querySelector('canvas')?.getContext('2d').getImageData(0, 0, 1000, 760).data.some((value) => value !== 0));
  await page.waitForTimeout(300);
  assert.ok((await drawn()) > 1000, 'entries are drawn');
  await page.locator('canvas').focus();
  for (let step = 0; step < 5; step += 1) await page.keyboard.press('+');
  await page.getByRole('status').filter({ hasText: /\d+ entries/ }).waitFor();
  assert.ok((await drawn()) > 100);
});

await test('images are a gallery', [example('digits.ds')], async (page) => {
  await tab(page, 'Gallery');
  const image = page.locator('img.picture');
  await image.waitFor();
  assert.ok(await image.evaluate((node) => node.decode().then(() => node.naturalWidth > 100)));
});

await test('a bit vector answers and has a run map', [example('exons.sds')], async (page) => {
  await tab(page, 'Structure');
  await page.locator('input[name=query]').fill('rank 300');
  await page.locator('input[name=query]').press('Enter');
  await page.locator('table.top td', { hasText: '21' }).waitFor();
  await page.locator('img.picture').waitFor();
});

await test('a finding leads to its bytes, and bytes to their part', [example('broken.dbdf'), example('ratings.dbdf')], async (page) => {
  await tab(page, 'Bytes');
  await page.locator('.findings button').first().click();
  await page.locator('.hex .bad').first().waitFor();
  assert.equal(await page.locator('.hex b.bad').first().getAttribute('data-offset'), '53');
  await tab(page, 'ratings.dbdf');
  await tab(page, 'Bytes');
  await page.getByRole('status').filter({ hasText: 'valid' }).waitFor();
  await page.locator('.hex b[data-offset="18"]').click();
  await page.locator('[role=treeitem][aria-selected=true]', { hasText: 'value_type' }).waitFor();
  assert.equal(await page.locator('.hex b.chosen').count(), 1);
  await page.locator('[role=treeitem]', { hasText: 'rows' }).first().click();
  assert.equal(await page.locator('.hex b.chosen').count(), 8);
});

await test('a plan is shown, then saved', [example('ticks.bson')], async (page) => {
  symlinkSync('/tmp/elsewhere.parquet', join(folder, 'link.parquet'));
  await tab(page, 'Convert');
  await page.locator('table.plan td', { hasText: 'price' }).first().waitFor();
  await page.locator('input[name=name]').fill('saved.parquet');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('status').filter({ hasText: 'saved saved.parquet: 240 rows' }).waitFor();
  assert.ok(existsSync(join(folder, 'saved.parquet')));
  const count = spawnSync(command, ['count', join(folder, 'saved.parquet')], { encoding: 'utf8' });
  assert.match(count.stdout, /^240 /);
  for (const [name, message] of [['saved.parquet', 'exists already'], ['../outside.parquet', 'without a folder'], ['link.parquet', 'exists already']]) {
    await page.locator('input[name=name]').fill(name);
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('alert').filter({ hasText: message }).waitFor();
  }
  assert.ok(!existsSync('/tmp/elsewhere.parquet') && !existsSync(join(folder, '../outside.parquet')));
});

await test('a page that reads only saves nothing', ['--read-only', example('ticks.bson')], async (page) => {
  await tab(page, 'Convert');
  await page.locator('table.plan td', { hasText: 'price' }).first().waitFor();
  assert.ok(await page.getByRole('button', { name: 'Save' }).isDisabled());
});

const wide = file('wide.csv', `${Array.from({ length: 2000 }, (_, at) => `c${at}`).join(',')}\n${Array.from({ length: 2000 }, (_, at) => at).join(',')}\n`);
await test('2,000 columns', [wide], async (page) => {
  await cell(page, /^0$/).first().waitFor();
  await page.locator('regular-table').focus();
  await page.keyboard.press('End');
  await cell(page, /^1999$/).first().waitFor();
});

await test('an empty table', [file('empty.jsonl', '{"a":1}\n'), '--where', 'a > 5'], async (page) => {
  await page.getByRole('status').filter({ hasText: /^0 rows/ }).waitFor();
  assert.equal(await cells(page).count(), 0);
});

const hostile = ['<img src=x onerror=alert(1)>', '<script>document.title="owned"</script>', '\u202Eevil\u0007\u001b[31m', '"><svg onload=alert(1)>'];
await test('a hostile file full of markup and control characters', [file('hostile <b>.jsonl', hostile.map((text) => JSON.stringify({ [hostile[0]]: text, plain: { nested: [text] } })).join('\n'))], async (page) => {
  let dialogs = 0;
  page.on('dialog', (dialog) => { dialogs += 1; dialog.dismiss(); });
  await cell(page, '<script>document.title="owned"</script>').first().waitFor();
  await tab(page, 'Columns');
  await page.locator('.panel dl').first().waitFor();
  await tab(page, 'Bytes');
  await page.locator('.hex b').first().waitFor();
  await tab(page, 'Parts');
  await page.locator('img.picture').waitFor();
  await tab(page, 'Convert');
  await page.locator('table.plan').waitFor();
  assert.equal(dialogs, 0);
  assert.equal(await page.locator('#page script, #page [onerror], #page [onload], main b b').count(), 0);
  assert.match(await page.title(), /Pentaglot/);
});

const rows = Array.from({ length: 300000 }, (_, at) => `${at},${at * 2}`);
await test('a file that breaks in the middle', [file('cut.csv', `a,b\n${rows.join('\n')}\n501,"no end\n`)], async (page) => {
  await cell(page, /^0$/).first().waitFor();
  await page.getByRole('alert').first().waitFor();
  await tab(page, 'Bytes');
  await page.locator('.findings .error').first().click();
  await page.locator('.hex .bad').first().waitFor();
});

// Requests that the page does not send.
{
  const server = await serve(example('ticks.bson'));
  const own = { Host: `127.0.0.1:${server.port}` };
  const expect = async (status, options) => assert.equal((await raw(server.port, options)).status, status, JSON.stringify(options));
  await expect(200, { headers: own });
  await expect(403, { headers: { Host: 'evil.example' } });
  await expect(403, { headers: { Host: `evil.example:${server.port}` } });
  await expect(403, { headers: { ...own, Origin: 'http://evil.example' } });
  await expect(403, { headers: { ...own, Origin: 'null' } });
  await expect(404, { headers: own, path: '/etc/passwd' });
  await expect(404, { headers: own, path: '/../../etc/passwd' });
  await expect(404, { headers: own, path: '/examples/data/ticks.bson' });
  await expect(401, { headers: own, path: '/api/files' });
  await expect(401, { headers: { ...own, Authorization: 'Bearer 00' }, path: '/api/files' });
  await expect(401, { headers: own, path: '/api/save', method: 'POST', body: '{}' });
  await expect(405, { headers: own, path: '/api/files', method: 'DELETE' });
  await expect(403, { headers: own, path: '/api/login', method: 'POST', body: '{"code":"x"}' });
  const login = await raw(server.port, { headers: own, path: '/api/login', method: 'POST', body: JSON.stringify({ code: server.code }) });
  const Authorization = `Bearer ${JSON.parse(login.text).token}`;
  await expect(200, { headers: { ...own, Authorization }, path: '/api/files' });
  await expect(403, { headers: { ...own, Authorization, Origin: 'http://evil.example' }, path: '/api/files' });
  await expect(400, { headers: { ...own, Authorization }, path: '/api/rows?file=7' });
  await expect(404, { headers: { ...own, Authorization }, path: '/api/other' });
  const { headers } = await raw(server.port, { headers: own });
  assert.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/);
  assert.doesNotMatch(headers['content-security-policy'], /unsafe/);
  assert.equal(headers['referrer-policy'], 'no-referrer');
  assert.equal(headers['access-control-allow-origin'], undefined);
  assert.equal(headers['set-cookie'], undefined);
  server.end();
  passed += 1;
  console.log('ok: requests without a token, from elsewhere, for other paths are refused');
}
{
  const server = await serve('--read-only', example('ticks.bson'));
  const own = { Host: `127.0.0.1:${server.port}` };
  const login = await raw(server.port, { headers: own, path: '/api/login', method: 'POST', body: JSON.stringify({ code: server.code }) });
  const answer = await raw(server.port, { headers: { ...own, Authorization: `Bearer ${JSON.parse(login.text).token}` }, path: '/api/save?file=0', method: 'POST', body: '{"to":"csv","name":"x.csv"}' });
  assert.equal(answer.status, 400);
  assert.match(answer.text, /read only/);
  assert.ok(!existsSync(join(folder, 'x.csv')));
  server.end();
  passed += 1;
  console.log('ok: --read-only forbids saving');
}
await browser.close();
console.log(`browser: ${passed} passed; screenshots in ${artefacts}`);
