/**
 * The lab: a machine in a page. One state (state.ts) determines the picture; views draw it and request another state.
 * The machine itself runs in workers, so that the page stays responsive.
 *
 *     address ──► state ──► view ──► workers: closed form, simulations, programs
 *                   ▲        │
 *                   └────────┘ a slider, a key, a click
 */
import { html, nothing, render, type TemplateResult } from 'lit-html';
import { ModelWorker } from './model-worker.ts';
import { addressOf, defaultState, type LabState, stateOf, type ViewName, viewNames } from './state.ts';
import type { Lab, View } from './view.ts';

const titles: Readonly<Record<ViewName, string>> = {
  operation: 'One operation, as it happens',
  'other-way': 'The other way',
  'what-if': 'What if',
  program: 'Write it yourself',
  fabric: 'A fabric',
  linux: 'A stock Linux',
};

/** Each view is in a file of its own, loaded when the view is first shown. */
const makers: Readonly<Record<ViewName, (lab: Lab) => Promise<View>>> = {
  operation: async (lab) => new (await import('./views/operation-view.ts')).OperationView(lab),
  'other-way': async (lab) => new (await import('./views/other-way-view.ts')).OtherWayView(lab),
  'what-if': async (lab) => new (await import('./views/what-if-view.ts')).WhatIfView(lab),
  fabric: async (lab) => new (await import('./views/fabric-view.ts')).FabricView(lab),
  linux: async (lab) => new (await import('./views/linux-view.ts')).LinuxView(lab),
  program: async (lab) => new (await import('./views/program-view.ts')).ProgramView(lab),
};

/** Browser features that a page needs to hold a machine's memory. */
const missing = (): string | undefined => {
  if (!globalThis.isSecureContext)
    return 'This page was not opened by HTTPS or from this computer, and browsers give shared memory to no other.';
  if (!globalThis.crossOriginIsolated)
    return 'This page was opened without the two headers that browsers want for shared memory, in which a host keeps its bytes: Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp. "npx hca lab" serves the lab with them.';
  return undefined;
};

const dark = matchMedia('(prefers-color-scheme: dark)');

class Page implements Lab {
  state: LabState = defaultState;
  readonly model = new ModelWorker();
  readonly #root: HTMLElement;
  readonly #views = new Map<ViewName, View>();
  #refused: readonly string[] = [];
  #isDrawing = false;
  #address = '';

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  async open(): Promise<void> {
    const { state, refused } = await stateOf(location.hash);
    this.#address = location.hash;
    this.#refused = refused;
    this.state = state;
    this.draw();
    await this.#changed();
  }

  /** Shows the view that the state selects and recomputes whatever changed; creates the view when it is first shown. */
  async #changed(): Promise<void> {
    const { view: name } = this.state;
    const view = this.#views.get(name) ?? (await makers[name](this));
    // Meanwhile the reader may have left the view and returned.
    if (!this.#views.has(name)) this.#views.set(name, view);
    if (this.state.view !== name) return;
    this.#views.get(name)!.changed();
    this.draw();
  }

  change(changes: Partial<LabState>): void {
    this.state = { ...this.state, ...changes };
    this.#refused = [];
    void this.#changed();
    this.draw();
    void this.#writeAddress();
  }

  /** Draws once for all changes of one event-loop turn. */
  draw(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    queueMicrotask(() => {
      this.#isDrawing = false;
      render(this.#page(), this.#root);
      this.#views.get(this.state.view)?.drawn?.();
    });
  }

  /** Whether the address was changed by other means: back, forward, or typing. */
  get isElsewhere(): boolean {
    return location.hash !== this.#address;
  }

  async #writeAddress(): Promise<void> {
    const state = this.state;
    const address = await addressOf(state);
    if (state !== this.state) return;
    history.replaceState(null, '', address === '' ? location.pathname : `#${address}`);
    this.#address = location.hash;
  }

  /** Charts keep the colours of their last drawing, so they are drawn again. */
  readonly #switchTheme = (): void => {
    const { dataset } = document.documentElement;
    const isDark = dataset['theme'] === undefined ? dark.matches : dataset['theme'] === 'dark';
    dataset['theme'] = isDark ? 'light' : 'dark';
    this.draw();
  };

  #page(): TemplateResult {
    const { view } = this.state;
    return html`
      <header>
        <h1>HCA lab</h1>
        <nav aria-label="Views">
          ${viewNames.map(
            (name) => html`<button class="tab" aria-current=${name === view ? 'page' : 'false'}
              @click=${() => this.change({ view: name })}>${titles[name]}</button>`,
          )}
        </nav>
        <button class="theme" @click=${this.#switchTheme} aria-label="Light or dark">◐</button>
      </header>
      ${this.#refused.length === 0 ? nothing : html`<p class="warning" role="alert">Of the address, this had no sense and was left out: ${this.#refused.join(', ')}</p>`}
      <main>${this.#views.get(view)?.draw() ?? html`<p role="status">Loading …</p>`}</main>
      <footer>All figures are computed in this page by the model; the address holds all that they depend on.</footer>
    `;
  }
}

const root = document.querySelector<HTMLElement>('#lab')!;
const why = missing();
if (why !== undefined) render(html`<h1>HCA lab</h1><p class="warning" role="alert">${why}</p>`, root);
else {
  const page = new Page(root);
  addEventListener('hashchange', () => {
    if (page.isElsewhere) void page.open();
  });
  dark.addEventListener('change', () => page.draw());
  await page.open();
}
