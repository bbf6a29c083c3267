// A table of any number of rows and columns: cells are fetched as they come into view.
import { useEffect, useRef, useState } from 'preact/hooks';
import 'regular-table';
import { cells, get, post, work } from './api.js';
import { Fault, count, html } from './parts.js';

const MISSING = 'missing';

export function Table({ file, index, filter: first }) {
  const place = useRef(null);
  const grid = useRef(null);
  const state = useRef({ rows: file.rows, view: null, x: 0, y: 0, sort: null, descending: false, epoch: 0 });
  const [rows, setRows] = useState(file.rows);
  const [filter, setFilter] = useState(first ?? '');
  const [fault, setFault] = useState('');
  const [status, setStatus] = useState('');
  const [opened, setOpened] = useState(null);
  const width = file.form === 'dense' ? file.cols : file.column_count;
  const nameOf = (column) => (file.form === 'dense' ? `col_${column}` : file.columns[column]?.name ?? `column ${column}`);
  const typeOf = (column) => (file.form === 'dense' ? '' : file.columns[column]?.type ?? '');

  async function listen(x0, y0, x1, y1) {
    const own = state.current;
    const shape = { num_rows: own.rows ?? 0, num_columns: width, data: [], row_headers: [], column_headers: [] };
    if (x1 <= x0 || y1 <= y0) return shape;
    const query = { file: index, from: y0, to: y1, first: x0, last: x1, ...(own.view === null ? {} : { view: own.view }) };
    const key = JSON.stringify(query);
    try {
      if (own.key !== key) {
        own.cells = await cells(query);
        own.key = key;
      }
    } catch (error) {
      setFault(error.message);
      return shape;
    }
    const [numbers, ...columns] = own.cells;
    const show = (value) => {
      if (value !== null) return value;
      const mark = document.createElement('span');
      mark.className = 'missing';
      mark.textContent = MISSING;
      return mark;
    };
    shape.data = columns.map((column) => column.map(show));
    shape.row_headers = numbers.map((number) => [count(number)]);
    shape.column_headers = columns.map((_, offset) => [nameOf(x0 + offset), typeOf(x0 + offset)]);
    own.numbers = { start: y0, numbers };
    return shape;
  }

  function mark() {
    const own = state.current;
    const table = grid.current;
    table.querySelector('table')?.setAttribute('aria-rowcount', String((own.rows ?? 0) + 1));
    table.querySelector('table')?.setAttribute('aria-colcount', String(width));
    for (const cell of table.querySelectorAll('tbody td')) {
      const about = table.getMeta(cell);
      const isChosen = about && about.x === own.x && about.y === own.y;
      cell.classList.toggle('chosen', isChosen);
      cell.classList.toggle('number', Boolean(about) && (file.form === 'dense' || /^(u?int|float|decimal)/.test(typeOf(about.x))));
      cell.setAttribute('aria-selected', String(isChosen));
      cell.setAttribute('role', 'gridcell');
    }
    for (const cell of table.querySelectorAll('thead tr:first-child th')) {
      const about = table.getMeta(cell);
      const isSorted = about?.x !== undefined && own.sort === nameOf(about.x);
      cell.setAttribute('aria-sort', isSorted ? (own.descending ? 'descending' : 'ascending') : 'none');
      cell.classList.toggle('sorted', isSorted);
      cell.classList.toggle('descending', isSorted && own.descending);
    }
  }

  async function arrange(change) {
    const own = state.current;
    Object.assign(own, change);
    setFault('');
    const wanted = (change.filter ?? filter).trim();
    try {
      if (wanted || own.sort) {
        setStatus('reading…');
        const found = await post('/api/view', { file: index }, { filter: wanted, sort: own.sort, descending: own.descending });
        Object.assign(own, { view: found.view, rows: found.rows });
      } else {
        Object.assign(own, { view: null, rows: own.total ?? file.rows });
      }
      setRows(own.rows);
      setStatus('');
      own.key = null;
      own.y = 0;
      grid.current.scrollTop = 0;
      await grid.current.draw({ invalid_viewport: true });
    } catch (error) {
      setStatus('');
      setFault(error.message);
    }
  }

  const sortBy = (column) => {
    const own = state.current;
    const name = nameOf(column);
    if (file.form === 'dense') return;
    if (own.sort !== name) arrange({ sort: name, descending: false });
    else if (!own.descending) arrange({ descending: true });
    else arrange({ sort: null, descending: false });
  };

  async function open(x, y) {
    const own = state.current;
    const number = own.numbers?.numbers[y - own.numbers.start];
    if (number === undefined) return;
    try {
      const { value } = await get('/api/cell', { file: index, row: number, column: x });
      setOpened({ title: `${nameOf(x)}, row ${count(number)}`, text: typeof value === 'string' ? value : JSON.stringify(value, null, 2) });
    } catch (error) {
      setFault(error.message);
    }
  }

  async function go(x, y) {
    const own = state.current;
    own.x = Math.max(0, Math.min(width - 1, x));
    own.y = Math.max(0, Math.min((own.rows ?? 1) - 1, y));
    const shown = own.numbers;
    const isShown = shown && own.y >= shown.start && own.y < shown.start + shown.numbers.length - 2;
    if (!isShown || !grid.current.querySelector('tbody td.chosen')) {
      // The table scrolls within the number of rows that it was drawn with last, which may be smaller while rows are counted.
      await grid.current.draw({ invalid_viewport: true });
      await grid.current.scrollToCell(own.x, own.y, width, own.rows);
    }
    await grid.current.draw();
  }

  const keys = (event) => {
    const own = state.current;
    const page = Math.max(1, (own.numbers?.numbers.length ?? 10) - 3);
    const end = (own.rows ?? 1) - 1;
    const target = {
      ArrowDown: [own.x, own.y + 1], ArrowUp: [own.x, own.y - 1], ArrowRight: [own.x + 1, own.y], ArrowLeft: [own.x - 1, own.y],
      PageDown: [own.x, own.y + page], PageUp: [own.x, own.y - page],
      Home: event.ctrlKey ? [0, 0] : [0, own.y], End: event.ctrlKey ? [width - 1, end] : [width - 1, own.y],
    }[event.key];
    if (target) {
      event.preventDefault();
      go(...target);
    } else if (event.key === 'Enter') {
      open(own.x, own.y);
    } else if (event.key === 's') {
      sortBy(own.x);
    }
  };

  useEffect(() => {
    const table = document.createElement('regular-table');
    table.tabIndex = 0;
    table.setAttribute('role', 'grid');
    table.setAttribute('aria-label', `rows of ${file.name}`);
    grid.current = table;
    place.current.append(table);
    table.setDataListener(listen);
    table.addStyleListener(mark);
    table.addEventListener('keydown', keys);
    table.addEventListener('click', (event) => {
      const cell = event.target.closest('td, th');
      const about = cell && table.getMeta(cell);
      if (!about) return;
      if (cell.closest('thead') && about.x !== undefined) sortBy(about.x);
      else if (about.x !== undefined && about.y !== undefined) {
        Object.assign(state.current, { x: about.x, y: about.y });
        table.draw();
      }
    });
    table.addEventListener('dblclick', (event) => {
      const about = event.target.closest('td') && table.getMeta(event.target.closest('td'));
      if (about?.y !== undefined) open(about.x, about.y);
    });
    let isCurrent = true;
    const start = async () => {
      if (file.rows == null) {
        const found = await work('/api/count', { file: index }, (at) => {
          setStatus('counting rows…');
          // The first rows are shown while they are counted.
          if (at.rows > (state.current.rows ?? 0)) {
            state.current.rows = at.rows;
            table.draw();
          }
        }, () => isCurrent).catch((error) => ({ rows: 0, error: error.message }));
        if (!found) return;
        setStatus('');
        if (found.error) setFault(found.error);
        const total = found.rows;
        Object.assign(state.current, { total, rows: total });
        setRows(total);
      }
      if (first) await arrange({ filter: first });
      else await table.draw();
    };
    start();
    return () => { isCurrent = false; table.remove(); };
  }, [index]);

  const submit = (event) => { event.preventDefault(); arrange({ filter }); };
  const jump = (event) => {
    event.preventDefault();
    go(state.current.x, Number(new FormData(event.target).get('row')) || 0);
    grid.current.focus();
  };
  return html`<section class="table" aria-label="Table">
    <div class="bar">
      <form onSubmit=${submit} class="grow"><label>Where <input name="filter" class="wide" value=${filter} spellcheck="false"
        placeholder="price > 100 and name is not null" onInput=${(event) => setFilter(event.target.value)} disabled=${file.form === 'dense'} /></label>
        <button>Filter</button></form>
      <form onSubmit=${jump}><label>Go to row <input name="row" inputmode="numeric" size="10" /></label><button>Go</button></form>
      <span role="status" class="note">${status || `${count(rows)} rows`}</span>
    </div>
    <${Fault} text=${fault} />
    <div class="place" ref=${place}></div>
    ${opened && html`<dialog open aria-label=${opened.title} onKeyDown=${(event) => event.key === 'Escape' && setOpened(null)}>
      <header><strong>${opened.title}</strong><button autofocus onClick=${() => setOpened(null)}>Close</button></header>
      <pre tabindex="0">${opened.text}</pre></dialog>`}
  </section>`;
}
