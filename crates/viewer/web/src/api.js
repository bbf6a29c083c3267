// Questions to the server. The token lives in this module only.
import { tableFromIPC } from '@uwdata/flechette';

let token = '';

/** Exchanges the code in the address for a token, and takes the code out of the address. */
export async function login() {
  const code = location.hash.slice(1);
  history.replaceState(null, '', location.pathname);
  const answer = await ask('POST', '/api/login', {}, { code });
  token = (await answer.json()).token;
}

async function ask(method, path, query, body) {
  const text = new URLSearchParams(query).toString();
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(text ? `${path}?${text}` : path, {
    method, headers, body: body && JSON.stringify(body), credentials: 'omit', cache: 'no-store',
  });
  if (!answer.ok) {
    const fault = await answer.json().catch(() => ({}));
    throw new Error(fault.error ?? `the server answered ${answer.status}`);
  }
  return answer;
}

export const get = async (path, query = {}) => (await ask('GET', path, query)).json();
export const post = async (path, query, body) => (await ask('POST', path, query, body)).json();
export const bytes = async (path, query) => new Uint8Array(await (await ask('GET', path, query)).arrayBuffer());

/** Columns of cells, the first one the numbers of the rows. Missing cells are null. */
export async function cells(query) {
  const table = tableFromIPC(await bytes('/api/rows', query));
  return Array.from({ length: table.numCols }, (_, index) => Array.from(table.getChildAt(index)));
}

/** A picture as the address of a blob. */
export async function picture(query) {
  const answer = await ask('GET', '/api/picture', query);
  return URL.createObjectURL(await answer.blob());
}

/** Asks until the work is done; tells how far it is. */
export async function work(path, query, progress, isWanted = () => true) {
  for (let wait = 60; isWanted(); wait = Math.min(wait * 1.5, 1000)) {
    const found = await get(path, query);
    if (found.state === 'done') return found.result;
    if (found.state === 'failed') throw new Error(found.error);
    progress?.(found);
    await new Promise((done) => setTimeout(done, wait));
  }
  return null;
}
