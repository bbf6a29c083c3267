// The plan of a conversion, field by field, then the conversion.
import { useEffect, useState } from 'preact/hooks';
import { post } from './api.js';
import { Fault, count, html } from './parts.js';

export function Convert({ file, index, targets, readOnly }) {
  const choices = targets.flatMap(({ id, title, extension, dialects }) => [{ to: id, title, extension },
    ...dialects.map((dialect) => ({ to: `${id}:${dialect}`, title: `${title}, ${dialect}`, extension }))]);
  const [to, setTo] = useState('parquet');
  const [plan, setPlan] = useState(null);
  const [lossy, setLossy] = useState(false);
  const [fault, setFault] = useState('');
  const [saved, setSaved] = useState('');
  const stem = file.name.replace(/(\.(gz|zst|bz2))?$/, '').replace(/\.[^.]*$/, '');
  const usual = (target) => `${stem}.${choices.find((choice) => choice.to === target)?.extension ?? target}`;
  const [name, setName] = useState(usual('parquet'));
  useEffect(() => {
    let isCurrent = true;
    setPlan(null);
    setFault('');
    post('/api/plan', { file: index }, { to }).then((answer) => isCurrent && setPlan(answer), (error) => isCurrent && setFault(error.message));
    return () => { isCurrent = false; };
  }, [index, to]);
  const save = async (event) => {
    event.preventDefault();
    setFault('');
    setSaved('saving…');
    try {
      const answer = await post('/api/save', { file: index }, { to, name, allow_lossy: lossy });
      setSaved(`saved ${answer.name}: ${count(answer.rows)} rows, ${count(answer.bytes)} bytes`);
    } catch (error) {
      setSaved('');
      setFault(error.message);
    }
  };
  return html`<section class="convert" aria-label="Convert">
    <form class="bar" onSubmit=${save}>
      <label>Format <select name="to" onChange=${(event) => { setTo(event.target.value); setName(usual(event.target.value)); }}>
        ${choices.map((choice) => html`<option value=${choice.to} selected=${choice.to === to}>${choice.to} (${choice.title})</option>`)}</select></label>
      <label>Name <input name="name" value=${name} onInput=${(event) => setName(event.target.value)} disabled=${readOnly} /></label>
      <label><input type="checkbox" checked=${lossy} onChange=${(event) => setLossy(event.target.checked)} disabled=${readOnly} /> allow losses</label>
      <button disabled=${readOnly || !plan || plan.verdict === 'impossible'}>Save</button>
      <span role="status" class="note">${readOnly ? 'this page reads only' : saved}</span>
    </form>
    <${Fault} text=${fault} />
    ${plan && html`<table class="plan"><caption>What would happen: <strong class=${plan.verdict}>${plan.verdict}</strong></caption>
      <thead><tr><th scope="col">field</th><th scope="col">from</th><th scope="col">to</th><th scope="col">verdict</th><th scope="col">note</th></tr></thead>
      <tbody>${plan.steps.slice(0, 2000).map((step) => html`<tr><td>${step.field || 'all'}</td><td>${step.from}</td><td>${step.to}</td>
        <td class=${step.verdict}>${step.verdict}${step.kind ? ` (${step.kind})` : ''}</td><td>${step.note}</td></tr>`)}</tbody></table>`}
  </section>`;
}
