// The bytes: the outline as a tree beside a hex view, findings marked in both.
import { useEffect, useState } from 'preact/hooks';
import { bytes, get, work } from './api.js';
import { Fault, count, html } from './parts.js';

const LINES = 32;
const LINE = 16;
const hex = (number, digits) => number.toString(16).padStart(digits, '0');

export function Bytes({ file, index }) {
  const [top, setTop] = useState(0);
  const [found, setFound] = useState(new Uint8Array());
  const [chosen, setChosen] = useState({ offset: 0, bytes: 0, path: null });
  const [report, setReport] = useState(null);
  const [fault, setFault] = useState('');
  const [branches, setBranches] = useState({});
  const findings = report?.findings ?? (file.error ? [{ severity: 'error', offset: file.offset ?? 0, path: '', message: file.error }] : []);

  useEffect(() => {
    let isCurrent = true;
    work('/api/validate', { file: index }, null, () => isCurrent)
      .then((answer) => isCurrent && answer && setReport(answer), (error) => isCurrent && setFault(error.message));
    if (!file.error) load('');
    return () => { isCurrent = false; };
  }, [index]);
  useEffect(() => {
    let isCurrent = true;
    bytes('/api/bytes', { file: index, offset: top, length: LINES * LINE })
      .then((answer) => isCurrent && setFound(answer), (error) => isCurrent && setFault(error.message));
    return () => { isCurrent = false; };
  }, [index, top]);

  async function load(path, from = 0) {
    try {
      const answer = await get('/api/outline', { file: index, path, from });
      setBranches((old) => ({ ...old, [path]: from ? { ...answer, parts: [...old[path].parts, ...answer.parts], open: true } : { ...answer, open: true } }));
    } catch (error) {
      setFault(error.message);
    }
  }
  const toggle = (path) => (branches[path] ? setBranches((old) => ({ ...old, [path]: { ...old[path], open: !old[path].open } })) : load(path));
  const show = (offset) => setTop((old) => (offset >= old && offset < old + LINES * LINE ? old : Math.floor(offset / LINE) * LINE));

  // Bytes lead to the part that holds them, parts and findings to their bytes.
  async function toOffset(offset) {
    show(offset);
    if (file.error) return setChosen({ offset, bytes: 1, path: null });
    try {
      const answer = await get('/api/locate', { file: index, offset });
      const steps = answer.path ? answer.path.split('.') : [];
      for (let level = 0; level < steps.length; level += 1) {
        const path = steps.slice(0, level).join('.');
        const step = Number(steps[level]);
        const branch = branches[path];
        if (!branch || step < branch.parts[0]?.index || step > branch.parts.at(-1)?.index) {
          const more = await get('/api/outline', { file: index, path, from: Math.max(0, step - 20) });
          setBranches((old) => ({ ...old, [path]: { ...more, open: true } }));
        } else if (!branch.open) {
          setBranches((old) => ({ ...old, [path]: { ...old[path], open: true } }));
        }
      }
      return setChosen({ offset: answer.node.offset, bytes: answer.node.bytes, path: answer.path, at: offset });
    } catch (error) {
      setChosen({ offset, bytes: 1, path: null });
      return setFault(error.message);
    }
  }
  const toNode = (path, node) => { setChosen({ offset: node.offset, bytes: node.bytes, path }); show(node.offset); };
  useEffect(() => { document.querySelector('[role=treeitem][aria-selected=true]')?.scrollIntoView({ block: 'nearest' }); }, [chosen, branches]);

  const keys = (event) => {
    const items = [...event.currentTarget.querySelectorAll('[role=treeitem]')];
    const at = items.indexOf(document.activeElement);
    const item = items[at];
    if (!item) return;
    const path = item.dataset.path;
    const isOpen = item.getAttribute('aria-expanded');
    if (event.key === 'ArrowDown') items[Math.min(at + 1, items.length - 1)].focus();
    else if (event.key === 'ArrowUp') items[Math.max(at - 1, 0)].focus();
    else if (event.key === 'ArrowRight' && isOpen === 'false') toggle(path);
    else if (event.key === 'ArrowLeft' && isOpen === 'true') toggle(path);
    else if (event.key === 'Enter' || event.key === ' ') item.click();
    else return;
    event.preventDefault();
  };
  const isBad = (offset, length) => findings.some((finding) => finding.offset !== null && finding.offset >= offset && finding.offset < offset + length);

  const branch = (path, level) => {
    const own = branches[path];
    if (!own?.open) return null;
    return html`${own.parts.map((node) => {
      const inner = path === '' ? String(node.index) : `${path}.${node.index}`;
      const isChosen = chosen.path === inner;
      return html`<div key=${inner} role="treeitem" data-path=${inner} aria-level=${level} aria-selected=${isChosen} tabindex=${isChosen || (level === 1 && node.index === 0) ? 0 : -1}
        aria-expanded=${node.parts ? String(Boolean(branches[inner]?.open)) : undefined} class=${`node ${isBad(node.offset, node.bytes) ? 'bad' : ''}`}
        style=${{ paddingLeft: `${level * 14}px` }} onClick=${() => toNode(inner, node)} onDblClick=${() => node.parts && toggle(inner)}>
        ${node.parts ? html`<span class="twist" onClick=${(event) => { event.stopPropagation(); toggle(inner); }}>${branches[inner]?.open ? '▾' : '▸'}</span>` : html`<span class="twist"></span>`}
        <span class="name">${node.name}</span> <span class="value">${node.value}</span> <span class="note">${count(node.bytes)} bytes at ${count(node.offset)}</span></div>
        ${node.parts && branch(inner, level + 1)}`;
    })}
    ${own.more && html`<button class="more" onClick=${() => load(path, own.parts.at(-1).index + 1)}>more parts</button>`}
    <${Fault} text=${own.error} />`;
  };
  const lines = Array.from({ length: Math.ceil(found.length / LINE) }, (_, line) => found.subarray(line * LINE, (line + 1) * LINE));
  const classOf = (offset) => [offset >= chosen.offset && offset < chosen.offset + chosen.bytes && 'chosen', chosen.at === offset && 'at', isBad(offset, 1) && 'bad'].filter(Boolean).join(' ');
  const size = file.bytes ?? Infinity;
  const jump = (event) => { event.preventDefault(); toOffset(Number(new FormData(event.target).get('offset')) || 0); };
  const scroll = (event) => {
    const step = { PageDown: LINES * LINE, PageUp: -LINES * LINE, ArrowDown: LINE, ArrowUp: -LINE }[event.key];
    if (!step) return;
    event.preventDefault();
    setTop(Math.max(0, Math.min(top + step, Math.floor((size - 1) / LINE) * LINE)));
  };
  return html`<section class="bytes" aria-label="Bytes">
    <div class="bar">
      <form onSubmit=${jump}><label>Offset <input name="offset" size="12" placeholder="53 or 0x35" /></label><button>Go</button></form>
      <button disabled=${top === 0} onClick=${() => setTop(Math.max(0, top - LINES * LINE))}>Earlier</button>
      <button disabled=${top + LINES * LINE >= size} onClick=${() => setTop(top + LINES * LINE)}>Later</button>
      <span role="status" class="note">${report ? (report.valid ? 'valid' : `${report.findings.length} findings`) : file.error ? 'broken' : 'checking…'}</span>
    </div>
    <${Fault} text=${fault} />
    ${findings.length > 0 && html`<ul class="findings" aria-label="Findings">${findings.slice(0, 100).map((finding) => html`<li>
      <button class=${finding.severity} onClick=${() => toOffset(finding.offset ?? 0)}><strong>${finding.severity}</strong>${finding.offset === null ? '' : ` at ${count(finding.offset)}`} ${finding.path} ${finding.message}</button></li>`)}</ul>`}
    <div class="beside">
      <div role="tree" aria-label="Parts" class="tree" onKeyDown=${keys}>${branch('', 1)}</div>
      <div class="hex" tabindex="0" aria-label="Bytes in hexadecimal digits" onKeyDown=${scroll}>${lines.map((line, number) => html`<div class="line" key=${number}>
        <span class="offset">${hex(top + number * LINE, 10)}</span>
        <span class="digits">${Array.from(line, (byte, at) => html`<b class=${classOf(top + number * LINE + at)} data-offset=${top + number * LINE + at} onClick=${() => toOffset(top + number * LINE + at)}>${hex(byte, 2)}</b>`)}</span>
        <span class="characters">${Array.from(line, (byte, at) => html`<i class=${classOf(top + number * LINE + at)}>${byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·'}</i>`)}</span></div>`)}</div>
    </div>
  </section>`;
}
