// The figures of columns, of a matrix or of a succinct structure, computed in the background.
import { useEffect, useState } from 'preact/hooks';
import { work } from './api.js';
import { Fault, count, html } from './parts.js';

const PAGE = 40;

export function Columns({ file, index }) {
  const [from, setFrom] = useState(0);
  const isWhole = file.form === 'dense' || file.form === 'sparse' || (file.kind && !file.members.length);
  if (isWhole) return html`<section class="panels" aria-label="Figures"><${Panel} index=${index} name=${file.name} whole=${true} /></section>`;
  const shown = file.columns.slice(from, from + PAGE);
  return html`<section class="panels" aria-label="Columns">
    ${file.columns.length > PAGE && html`<nav class="bar" aria-label="Pages of columns">
      <button disabled=${from === 0} onClick=${() => setFrom(from - PAGE)}>Previous</button>
      <span>columns ${from + 1} to ${from + shown.length} of ${count(file.column_count)}</span>
      <button disabled=${from + PAGE >= file.columns.length} onClick=${() => setFrom(from + PAGE)}>Next</button></nav>`}
    ${shown.map((column) => html`<${Panel} key=${column.name} index=${index} name=${column.name} type=${column.type} />`)}
  </section>`;
}

// One column at a time is read: the others wait.
let last = Promise.resolve();

function Panel({ index, name, type, whole }) {
  const [state, setState] = useState({});
  useEffect(() => {
    let isCurrent = true;
    const ask = () => isCurrent && work('/api/describe', whole ? { file: index } : { file: index, column: name },
      (at) => isCurrent && setState({ at }), () => isCurrent)
      .then((found) => isCurrent && found && setState({ found }), (error) => isCurrent && setState({ error: error.message }));
    last = last.then(ask);
    return () => { isCurrent = false; };
  }, [index, name]);
  const { found, at, error } = state;
  const column = found?.columns ? found.columns[0] : null;
  return html`<article class="panel" aria-label=${name} aria-busy=${!found && !error}>
    <h3>${name} <small>${type}</small></h3>
    <${Fault} text=${error} />
    ${!found && !error && html`<progress max="1" value=${at?.total ? Math.min(at.bytes / at.total, 1) : undefined} aria-label="reading"></progress>`}
    ${column ? html`<${Figures} column=${column} />` : found && html`<${Facts} found=${found} />`}
  </article>`;
}

function text(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number') return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function rowsOf(pairs) {
  return html`<dl>${pairs.filter(([, value]) => text(value) !== null).map(([key, value]) => html`<div><dt>${key}</dt><dd>${text(value)}</dd></div>`)}</dl>`;
}

function Figures({ column }) {
  const about = column.distinct_exact ? '' : 'about ';
  const quantiles = Object.entries(column.quantiles ?? {}).map(([key, value]) => [`${Number(key) * 100} %`, value]);
  const lengths = column.lengths && `${column.lengths.min} to ${column.lengths.max}`;
  return html`
    ${column.histogram && column.histogram.counts.length > 1 && html`<${Bars} histogram=${column.histogram} name=${column.name} />`}
    ${rowsOf([['values', count(column.count)], ['missing', count(column.nulls)], ['NaN', column.nans || null],
      ['distinct', about + count(column.distinct)], ['true', column.true], ['false', column.false], ['min', column.min], ...quantiles,
      ['max', column.max], ['mean', column.mean], ['deviation', column.std], ['length', lengths]])}
    ${column.top.length > 0 && html`<table class="top"><caption>most frequent${column.top_exact ? '' : ' (at least)'}</caption>
      <tbody>${column.top.map(([value, times]) => html`<tr><td>${text(value)}</td><td>${count(times)}</td></tr>`)}</tbody></table>`}`;
}

function Bars({ histogram, name }) {
  const most = Math.max(...histogram.counts);
  const width = 100 / histogram.counts.length;
  return html`<svg class="bars" viewBox="0 0 100 32" preserveAspectRatio="none" role="img" aria-label=${`histogram of ${name}`}>
    ${histogram.counts.map((times, at) => times > 0 && html`<rect x=${at * width} y=${32 - (times / most) * 32} width=${width * 0.92}
      height=${(times / most) * 32}><title>${count(times)}</title></rect>`)}</svg>`;
}

function Facts({ found }) {
  const pairs = Object.entries(found).flatMap(([key, value]) => value && typeof value === 'object'
    ? Object.entries(value).map(([part, inner]) => [`${key} ${Number(part) * 100} %`, inner])
    : [[key, typeof value === 'boolean' ? (value ? 'yes' : 'no') : value]]);
  return rowsOf(pairs);
}
