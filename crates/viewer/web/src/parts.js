// What all panels use.
import { h } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import htm from 'htm';

export const html = htm.bind(h);

/** `1234567` as `1,234,567`. */
export const count = (number) => (number == null ? 'unknown' : Number(number).toLocaleString('en-US'));

/** What a promise gives: undefined while it waits. */
export function useLoaded(load, inputs) {
  const [state, setState] = useState({});
  useEffect(() => {
    let isCurrent = true;
    setState({});
    load().then(
      (value) => isCurrent && setState({ value }),
      (error) => isCurrent && setState({ error: error.message }),
    );
    return () => { isCurrent = false; };
  }, inputs);
  return state;
}

/** Tabs that arrow keys move through. */
export function Tabs({ label, names, chosen, choose, id }) {
  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const target = event.key === 'Home' ? 0 : event.key === 'End' ? names.length - 1 : step && (chosen + step + names.length) % names.length;
    if (target === undefined) return;
    event.preventDefault();
    choose(target);
    event.currentTarget.querySelectorAll('[role=tab]')[target].focus();
  };
  return html`<div role="tablist" aria-label=${label} class="tabs" onKeyDown=${move}>
    ${names.map((name, index) => html`<button role="tab" id=${`${id}-${index}`} aria-selected=${index === chosen}
      tabindex=${index === chosen ? 0 : -1} onClick=${() => choose(index)}>${name}</button>`)}
  </div>`;
}

export const Fault = ({ text }) => text && html`<p role="alert" class="fault">${text}</p>`;

/** Places on an axis with round numbers. */
export function ticks(low, high, wanted) {
  const least = Math.max((high - low) / wanted, 1e-300);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max([1, 2, 5, 10].find((factor) => factor * power >= least * 0.999) * power, 1);
  const found = [];
  for (let place = Math.ceil(low / step) * step; place <= high && found.length < 100; place += step) found.push(place);
  return found;
}
