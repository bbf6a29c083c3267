// A spy plot: where the entries of a matrix are, down to single ones.
import { useEffect, useRef, useState } from 'preact/hooks';
import { get } from './api.js';
import { Fault, count, html, ticks } from './parts.js';

const LEFT = 70;
const TOP = 26;
/** Rows and columns up to which entries are shown one by one. */
const NEAR = 48;

export function Matrix({ file, index, theme }) {
  const canvas = useRef(null);
  const [area, setArea] = useState({ top: 0, left: 0, bottom: file.rows ?? 0, right: file.cols ?? 0 });
  const [found, setFound] = useState(null);
  const [fault, setFault] = useState('');
  const [chosen, setChosen] = useState('');
  const rows = area.bottom - area.top;
  const cols = area.right - area.left;
  const isNear = rows <= NEAR && cols <= NEAR;

  useEffect(() => {
    let isCurrent = true;
    get('/api/spy', { file: index, ...area, entries: isNear ? 1 : 0 }).then(
      (answer) => isCurrent && setFound({ ...answer, area }),
      (error) => isCurrent && setFault(error.message));
    return () => { isCurrent = false; };
  }, [index, area.top, area.left, area.bottom, area.right]);
  useEffect(() => { if (found) draw(canvas.current, found); }, [found, theme]);

  // Zooms by a factor about a place, given as parts of the area.
  const zoom = (factor, across = 0.5, down = 0.5) => setArea((old) => {
    const fit = (from, to, most, part) => {
      const size = Math.max(1, Math.min(most, Math.ceil((to - from) * factor)));
      const start = Math.max(0, Math.min(most - size, Math.floor(from + (to - from - size) * part)));
      return [start, start + size];
    };
    const [top, bottom] = fit(old.top, old.bottom, file.rows, down);
    const [left, right] = fit(old.left, old.right, file.cols, across);
    return { top, bottom, left, right };
  });
  const move = (across, down) => setArea((old) => {
    const shift = (from, to, most, part) => {
      const step = Math.round((to - from) * part) || Math.sign(part);
      const start = Math.max(0, Math.min(most - (to - from), from + step));
      return [start, start + to - from];
    };
    const [top, bottom] = shift(old.top, old.bottom, file.rows, down);
    const [left, right] = shift(old.left, old.right, file.cols, across);
    return { top, bottom, left, right };
  });
  const all = () => setArea({ top: 0, left: 0, bottom: file.rows, right: file.cols });
  const partOf = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const scale = canvas.current.width / box.width;
    return [((event.clientX - box.left) * scale - LEFT) / (canvas.current.width - LEFT), ((event.clientY - box.top) * scale - TOP) / (canvas.current.height - TOP)];
  };
  const keys = (event) => {
    const act = {
      '+': () => zoom(0.5), '=': () => zoom(0.5), '-': () => zoom(2), '0': all,
      ArrowLeft: () => move(-0.25, 0), ArrowRight: () => move(0.25, 0), ArrowUp: () => move(0, -0.25), ArrowDown: () => move(0, 0.25),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  };
  const point = (event) => {
    const [across, down] = partOf(event);
    if (across < 0 || down < 0) return setChosen('');
    const row = area.top + Math.floor(down * rows);
    const col = area.left + Math.floor(across * cols);
    const entry = found?.entries?.find(([r, c]) => r === row && c === col);
    return setChosen(`row ${row}, column ${col}${found?.entries ? (entry ? ` = ${entry[2]}` : ', no entry') : ''}`);
  };
  const label = `rows ${count(area.top)} to ${count(area.bottom)}, columns ${count(area.left)} to ${count(area.right)}`;
  return html`<section class="matrix" aria-label="Matrix">
    <div class="bar">
      <button onClick=${() => zoom(0.5)} aria-label="Zoom in">+</button><button onClick=${() => zoom(2)} aria-label="Zoom out">−</button>
      <button onClick=${all}>All</button>
      <span role="status" class="note">${label}${found?.entries ? `, ${found.entries.length} entries` : ''}</span>
      <span class="note">${chosen}</span>
    </div>
    <${Fault} text=${fault} />
    <canvas ref=${canvas} width="1000" height="760" tabindex="0" role="img" aria-label=${`entries in ${label}`} onKeyDown=${keys}
      onMouseMove=${point} onDblClick=${(event) => zoom(0.5, ...partOf(event))}
      onWheel=${(event) => { event.preventDefault(); zoom(event.deltaY > 0 ? 2 : 0.5, ...partOf(event)); }}></canvas>
    <p class="note">Wheel, double click or + and − zoom; arrow keys move; 0 shows all.</p>
  </section>`;
}

function draw(canvas, { area, width, cells, entries }) {
  const style = getComputedStyle(canvas);
  const pen = canvas.getContext('2d');
  const [ink, ground, mark] = ['--ink', '--ground', '--mark'].map((name) => style.getPropertyValue(name).trim());
  const [wide, high] = [canvas.width - LEFT, canvas.height - TOP];
  pen.fillStyle = ground;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  const rows = area.bottom - area.top;
  const cols = area.right - area.left;
  const [h, w] = [high / rows, wide / cols];
  if (entries) {
    const sizes = entries.map(([, , value]) => Math.abs(Number(value)) || 0);
    const most = Math.max(...sizes, 1e-300);
    entries.forEach(([row, col, value], at) => {
      const [x, y] = [LEFT + (col - area.left) * w, TOP + (row - area.top) * h];
      pen.globalAlpha = 0.25 + 0.75 * (sizes[at] / most);
      pen.fillStyle = mark;
      pen.fillRect(x, y, Math.max(w - 1, 1), Math.max(h - 1, 1));
      pen.globalAlpha = 1;
      if (w > 44 && h > 16) {
        pen.fillStyle = sizes[at] / most > 0.5 ? '#ffffff' : ink;
        pen.font = '13px sans-serif';
        pen.textAlign = 'center';
        const text = typeof value === 'number' ? String(Number(value.toPrecision(6))) : String(value);
        pen.fillText(text, x + w / 2, y + h / 2 + 4, w - 4);
      }
    });
  } else {
    const lines = cells.length / width;
    pen.fillStyle = mark;
    cells.forEach((part, at) => {
      if (part === 0) return;
      pen.globalAlpha = 0.2 + 0.8 * Math.sqrt(part);
      const [x, y] = [(at % width) * (wide / width), Math.floor(at / width) * (high / lines)];
      pen.fillRect(LEFT + x, TOP + y, Math.max(wide / width, 1), Math.max(high / lines, 1));
    });
    pen.globalAlpha = 1;
  }
  pen.fillStyle = ink;
  pen.font = '12px sans-serif';
  pen.textAlign = 'right';
  for (const tick of ticks(area.top, area.bottom - 1, 10)) pen.fillText(count(tick), LEFT - 8, TOP + (tick - area.top + 0.5) * h + 4);
  pen.textAlign = 'center';
  for (const tick of ticks(area.left, area.right - 1, 10)) pen.fillText(count(tick), LEFT + (tick - area.left + 0.5) * w, TOP - 9);
  pen.strokeStyle = ink;
  pen.globalAlpha = 0.4;
  pen.strokeRect(LEFT - 0.5, TOP - 0.5, wide, high);
  pen.globalAlpha = 1;
}
