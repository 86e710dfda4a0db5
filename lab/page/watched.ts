/** Common parts of the views with a time axis: their frame, the field of sizes, and the row of time controls. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, timeText } from '../../explain/text/format.ts';
import type { Player } from './player.ts';

/** @param shown the computed data, as drawn; undefined until available */
export const frame = (
  { isRunning, error }: { readonly isRunning: boolean; readonly error: string | undefined },
  fields: TemplateResult,
  shown: TemplateResult | undefined,
): TemplateResult => html`<section class="operation" aria-busy=${isRunning}>
  <div class="row">${fields}<span role="status">${isRunning ? 'simulating …' : ''}</span></div>
  ${error === undefined ? nothing : html`<p class="warning" role="alert">${error}</p>`}
  ${shown ?? html`<p role="status">${error === undefined ? 'Simulating …' : nothing}</p>`}
</section>`;

/** The offered sizes, and in addition the one in the address. */
export function sizeField(
  title: string,
  sizes: readonly number[],
  sizeBytes: number,
  change: (sizeBytes: number) => void,
): TemplateResult {
  const shown = [...new Set([...sizes, sizeBytes])].sort((left, right) => left - right);
  return html`<label>${title} <select @change=${(event: Event) => change(Number(chosen(event)))}>
    ${shown.map((size) => html`<option value=${size} ?selected=${size === sizeBytes}>${bytesText(size)}</option>`)}
  </select></label>`;
}

export interface PlayerRow {
  readonly player: Player;
  readonly playSeconds: number;
  /** Instants to step through, ascending. */
  readonly instants: readonly number[];
  /** Kind of these instants: `event`, `change`. */
  readonly stepName: string;
  /** Reference point of the instants. */
  readonly since: string;
  readonly fromPs: number;
  readonly toPs: number;
  /** Called when the reader has moved to another instant and stays there. */
  moved(): void;
  draw(): void;
  /** Fields between the buttons and the instant. */
  readonly more?: TemplateResult;
}

export function playerRow(row: PlayerRow): TemplateResult {
  const { player, instants, stepName, since, fromPs, toPs } = row;
  const step = (direction: 1 | -1) => () => {
    player.step(instants, direction);
    row.moved();
  };
  const toggle = (): void => {
    if (player.isPlaying) {
      player.pause();
      row.moved();
      row.draw();
    } else player.play(row.playSeconds);
  };
  const slide = (event: Event): void => {
    player.goTo(Number(chosen(event)));
    row.moved();
  };
  return html`<div class="row player">
    <button @click=${step(-1)} aria-label="Back to the previous ${stepName}">◀ Back</button>
    <button class="main" @click=${toggle}>${player.isPlaying ? 'Pause' : 'Play'}</button>
    <button @click=${step(1)} aria-label="Forward to the next ${stepName}">Forward ▶</button>
    ${row.more ?? nothing}
    <label class="instant">Instant <input type="range" min=${fromPs} max=${toPs} step="1000" .value=${String(player.atPs)}
      aria-valuetext="${timeText(player.atPs)} after the ${since}" @input=${slide}>
    <output>${nsText(player.atPs)}</output></label>
  </div>`;
}

/** Clears the choice for a new operation. */
export const fromTheBegin = { atPs: 0, block: '', event: undefined } as const;

/** Exact to the picosecond, as needed in citations. */
export const nsText = (ps: number): string => `${(ps / 1000).toFixed(3)} ns`;

/** Current value of a form field. */
export const chosen = (event: Event): string => (event.target as HTMLInputElement | HTMLSelectElement).value;

/** The error, in words. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
