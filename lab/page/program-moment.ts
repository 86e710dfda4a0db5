/** The block diagram of the machine at the instant at which a program has stopped. */
import { html, type TemplateResult } from 'lit-html';
import { timeText } from '../../explain/text/format.ts';
import type { MachinePicture, ProgramOrder } from '../protocol.ts';
import { colourKey, diagram } from './diagram.ts';
import { hasWidthAcross, layoutOfPicture } from './diagram-layout.ts';
import { Latest } from './latest.ts';
import { momentPicture } from './program-picture.ts';
import { ProgramWorker } from './program-worker.ts';

export class ProgramMoment {
  readonly #drawn: () => void;
  /** A separate worker; the program stays stopped in its own worker. */
  readonly #worker = new ProgramWorker();
  readonly #latest = new Latest();
  #asked: { readonly atPs: number; readonly picture: MachinePicture | undefined } | undefined;

  /** @param drawn called when a picture is ready to be drawn */
  constructor(drawn: () => void) {
    this.#drawn = drawn;
  }

  /** Discards the picture after the program has left the instant. */
  drop(): void {
    this.#latest.drop();
    if (this.#asked?.picture === undefined) this.#worker.stop();
    this.#asked = undefined;
  }

  /** Requests the picture of the instant at which the program has stopped. */
  async ask(order: ProgramOrder, atPs: number): Promise<void> {
    this.drop();
    const isWanted = this.#latest.begin();
    this.#asked = { atPs, picture: undefined };
    try {
      const picture = await momentPicture(this.#worker, order, atPs, isWanted);
      if (picture === undefined || !isWanted()) return;
      this.#asked = { atPs, picture };
    } catch {
      // The program was ended because it did not return; the view reports that for its own run.
      if (!isWanted()) return;
      this.#asked = undefined;
    }
    this.#drawn();
  }

  draw(): TemplateResult {
    if (this.#asked === undefined) return html``;
    const { atPs, picture } = this.#asked;
    const title = `The machine at ${timeText(atPs)}`;
    return html`<section class="moment" aria-busy=${picture === undefined}><h2>${title}</h2>
      ${
        picture === undefined
          ? html`<p role="status">Drawing …</p>`
          : html`${diagram(picture, layoutOfPicture(picture, hasWidthAcross()), 0, `at ${timeText(atPs)}`, noMarks)}
            <p class="key">${colourKey.map(([text, colour]) => html`<span><i class="mark c${colour}"></i>${text}</span>`)}</p>`
      }</section>`;
  }
}

const noMarks = { block: '', shown: undefined } as const;
