/** What the views that show a time share: their frame, the field of sizes, and the row by which the time is gone through. */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, timeText } from '../../explain/text/format.ts';
import type { Player } from './player.ts';

/** @param shown what has been computed, as it is drawn; undefined until then */
export const frame = (
  isComputing: boolean,
  fields: TemplateResult,
  error: string | undefined,
  shown: TemplateResult | undefined,
): TemplateResult => html`<section class="operation" aria-busy=${isComputing}>
  <div class="row">${fields}<span role="status">${isComputing ? 'simulating …' : ''}</span></div>
  ${error === undefined ? nothing : html`<p class="warning" role="alert">${error}</p>`}
  ${shown ?? html`<p role="status">${error === undefined ? 'Simulating …' : nothing}</p>`}
</section>`;

/** Those that are offered, and the one that an address asks for beside them. */
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
  /** That are stepped through, ascending. */
  readonly instants: readonly number[];
  /** What stands at such an instant: `event`, `change`. */
  readonly stepName: string;
  /** What instants are after. */
  readonly since: string;
  readonly fromPs: number;
  readonly toPs: number;
  /** The reader has moved to another instant, and stays there. */
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

/** To the picosecond, which is what a citation needs. */
export const nsText = (ps: number): string => `${(ps / 1000).toFixed(3)} ns`;

/** What a field of a form holds now. */
export const chosen = (event: Event): string => (event.target as HTMLInputElement | HTMLSelectElement).value;

/** What went wrong, in words. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
