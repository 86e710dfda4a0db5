/** Curves over a logarithmic axis, by uPlot: as wide as their place, in the page's light or dark colours. */
import { html, type TemplateResult } from 'lit-html';
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js';
import uPlot from 'uplot';

export interface Curve {
  readonly name: string;
  /** Index into the page's colours. */
  readonly colour: number;
  readonly points: readonly (readonly [x: number, y: number])[];
  /** Draws a line, or points only. */
  readonly isLine: boolean;
}

const heightPx = 280;

export class Chart {
  readonly #title: string;
  readonly #xUnit: string;
  readonly #yUnit: string;
  readonly #place: Ref<HTMLElement> = createRef();
  #plot: uPlot | undefined;
  #curves: readonly Curve[] = [];
  #shape = '';
  #observer: ResizeObserver | undefined;

  constructor(title: string, xUnit: string, yUnit: string) {
    this.#title = title;
    this.#xUnit = xUnit;
    this.#yUnit = yUnit;
  }

  draw(): TemplateResult {
    return html`<div class="chart" role="img" aria-label="${this.#title}; the figures stand in the table below" ${ref(this.#place)}></div>`;
  }

  /** Must be called once the element is in the page. */
  show(curves: readonly Curve[]): void {
    const place = this.#place.value;
    if (place === undefined) return;
    this.#curves = curves;
    const shape = `${resolvedColour(place, '--text')} ${curves.map(({ name }) => name).join()}`;
    if (this.#plot === undefined || shape !== this.#shape || this.#plot.root.parentElement !== place)
      this.#make(place, shape);
    this.#plot!.setData(this.#data());
  }

  #make(place: HTMLElement, shape: string): void {
    this.#plot?.destroy();
    this.#observer?.disconnect();
    this.#shape = shape;
    const colourOf = (name: string): string => resolvedColour(place, name);
    const axis = {
      stroke: colourOf('--dim'),
      grid: { stroke: colourOf('--line'), width: 1 },
      ticks: { stroke: colourOf('--line') },
    };
    this.#plot = new uPlot(
      {
        width: Math.max(200, place.clientWidth),
        height: heightPx,
        scales: { x: { time: false, distr: 3, log: 2 }, y: { distr: 3 } },
        axes: [
          { ...axis, label: this.#xUnit },
          { ...axis, label: this.#yUnit, size: 60 },
        ],
        legend: { live: false },
        cursor: { drag: { x: false, y: false } },
        series: [
          {},
          ...this.#curves.map(({ name, colour, isLine }) => ({
            label: name,
            stroke: colourOf(`--c${colour}`),
            spanGaps: true,
            width: isLine ? 2 : 0,
            paths: isLine ? uPlot.paths.linear!() : () => null,
            points: {
              show: !isLine,
              size: 9,
              fill: colourOf(`--c${colour}`),
              stroke: colourOf(`--c${colour}`),
            },
          })),
        ],
      },
      this.#data(),
      place,
    );
    this.#observer = new ResizeObserver(() =>
      this.#plot?.setSize({ width: Math.max(200, place.clientWidth), height: heightPx }),
    );
    this.#observer.observe(place);
  }

  #data(): uPlot.AlignedData {
    const xs = [...new Set(this.#curves.flatMap(({ points }) => points.map(([x]) => x)))].sort(
      (a, b) => a - b,
    );
    const columns = this.#curves.map(({ points }) => {
      const found = new Map(points);
      return xs.map((x) => found.get(x) ?? null);
    });
    return [xs, ...columns] as uPlot.AlignedData;
  }
}

/** A style sheet colour as a canvas needs it, for the page's light or dark scheme. */
function resolvedColour(place: HTMLElement, name: string): string {
  const probe = document.createElement('span');
  probe.style.color = `var(${name})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
