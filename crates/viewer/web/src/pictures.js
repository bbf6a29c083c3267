// Pictures that the server draws: galleries, run maps, treemaps; and questions to succinct structures.
import { useEffect, useState } from 'preact/hooks';
import { get, picture } from './api.js';
import { Fault, count, html, useLoaded } from './parts.js';

function Picture({ query, label }) {
  const { value, error } = useLoaded(() => picture(query), [JSON.stringify(query)]);
  useEffect(() => () => value && URL.revokeObjectURL(value), [value]);
  return html`<${Fault} text=${error} />${value && html`<img class="picture" src=${value} alt=${label} />`}`;
}

export function Gallery({ file, index }) {
  const pictures = file.columns.filter((column) => column.picture);
  const [column, setColumn] = useState(pictures[0]?.name);
  const [from, setFrom] = useState(0);
  return html`<section aria-label="Gallery">
    <div class="bar">
      <label>Column <select onChange=${(event) => { setColumn(event.target.value); setFrom(0); }}>
        ${pictures.map(({ name }) => html`<option selected=${name === column}>${name}</option>`)}</select></label>
      <button disabled=${from === 0} onClick=${() => setFrom(Math.max(0, from - 60))}>Previous</button>
      <span class="note">from row ${count(from)}</span>
      <button disabled=${file.rows != null && from + 60 >= file.rows} onClick=${() => setFrom(from + 60)}>Next</button>
    </div>
    <${Picture} query=${{ file: index, kind: 'sheet', column, from, width: 1100, height: 760 }} label=${`${column} from row ${from}`} />
  </section>`;
}

export function Bits({ file, index }) {
  const [query, setQuery] = useState('count');
  const [answers, setAnswers] = useState([]);
  const [fault, setFault] = useState('');
  const isBits = ['bit', 'raw', 'sparse', 'rl'].includes(file.kind);
  const ask = async (event) => {
    event.preventDefault();
    setFault('');
    try {
      const { answer } = await get('/api/query', { file: index, query });
      setAnswers([[query, answer ?? '-'], ...answers].slice(0, 20));
    } catch (error) {
      setFault(error.message);
    }
  };
  return html`<section aria-label="Structure">
    <form class="bar" onSubmit=${ask}><label>Query <input name="query" value=${query} spellcheck="false"
      onInput=${(event) => setQuery(event.target.value)} placeholder="rank 300" /></label><button>Ask</button>
      <span class="note">get I, rank I, rank0 I, select K, select0 K, pred I, succ I, inverse_select I, count, len</span></form>
    <${Fault} text=${fault} />
    <table class="top" aria-label="Answers"><tbody aria-live="polite">${answers.map(([question, answer]) => html`<tr><td>${question}</td><td>${answer}</td></tr>`)}</tbody></table>
    ${isBits && html`<${Picture} query=${{ file: index, kind: 'runs', width: 1000, height: 560 }} label="where the ones are" />`}
  </section>`;
}

export const Parts = ({ index }) => html`<section aria-label="Bytes by part"><${Picture} query=${{ file: index, kind: 'treemap', width: 1000, height: 560 }} label="bytes by part" /></section>`;
