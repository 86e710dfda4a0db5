/**
 * "The other way": the same bytes by sockets, by programmed I/O, by the system's DMA controller and by RDMA, on one
 * time axis: the activity of each core at an instant, and the use of its cycles until then.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, countText, timeText } from '../../../explain/text/format.ts';
import { wordsOf } from '../../../explain/text/words.ts';
import {
  type ComparePath,
  type CoreWork,
  comparePaths,
  pathTitles,
  type TransferPicture,
} from '../../protocol.ts';
import { type AmountRow, colourKey, colourNumber, stackedBars } from '../bars.ts';
import { Computation } from '../computation.ts';
import { Player } from '../player.ts';
import { spentUntil } from '../spent.ts';
import { type Axis, timeAxis } from '../time-axis.ts';
import type { Lab, View } from '../view.ts';
import { chosen, frame, playerRow, sizeField } from '../watched.ts';

const sizes = [8, 64, 256, 1024, 4096, 16_384] as const;
/** The most interesting way first; each is drawn when its result arrives. */
const askedOrder: readonly ComparePath[] = ['write', 'sockets', 'send', 'read', 'dma', 'pio'];
const playSeconds = 15;

export class OtherWayView implements View {
  readonly #lab: Lab;
  readonly #computation: Computation;
  readonly #player: Player;
  #pictures: readonly TransferPicture[] = [];
  #axis: Axis | undefined;
  #causes: readonly string[] = [];
  #instants: readonly number[] = [];
  #asked = '';

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#computation = new Computation(() => lab.draw());
    this.#player = new Player(() => lab.draw());
  }

  changed(): void {
    const { machine, message, atPs } = this.#lab.state;
    const asked = JSON.stringify([machine, message.sizeBytes]);
    if (asked !== this.#asked) {
      this.#asked = asked;
      void this.#computation.run((isWanted) => this.#compute(isWanted));
    } else if (this.#axis !== undefined) {
      this.#arrange();
      if (atPs !== this.#player.atPs) this.#player.goTo(atPs);
    }
  }

  async #compute(isWanted: () => boolean): Promise<void> {
    const { machine, message, atPs } = this.#lab.state;
    this.#pictures = [];
    this.#axis = undefined;
    this.#computation.error = undefined;
    for (const path of askedOrder) {
      const picture = await this.#lab.model.ask.transfer({ machine, path, sizeBytes: message.sizeBytes });
      if (!isWanted()) return;
      this.#pictures = [...this.#pictures, picture];
      this.#arrange();
      this.#player.goTo(atPs);
    }
  }

  /** Rows of the axis, for the pictures that have arrived. */
  #arrange(): void {
    const shown = comparePaths.flatMap((path) => this.#pictures.find((each) => each.path === path) ?? []);
    this.#pictures = shown;
    this.#causes = [
      ...new Set(shown.flatMap(({ hosts }) => hosts.flatMap(({ cycles }) => Object.keys(cycles)))),
    ].sort();
    this.#axis = axisOf(shown, this.#causes, this.#lab.state.span);
    this.#instants = [
      ...new Set(shown.flatMap(({ hosts }) => hosts.flatMap(({ work }) => work.map(({ fromPs }) => fromPs)))),
    ].sort((left, right) => left - right);
    this.#player.spans(this.#axis.fromPs, this.#axis.toPs);
  }

  draw(): TemplateResult {
    const axis = this.#axis;
    const shown = axis === undefined ? undefined : this.#shown(axis);
    return frame(this.#computation, this.#fields(), shown);
  }

  #fields(): TemplateResult {
    const { message, span } = this.#lab.state;
    return html`${sizeField('Bytes', sizes, message.sizeBytes, (sizeBytes) =>
      this.#lab.change({ message: { ...message, sizeBytes }, atPs: 0 }),
    )}
      <label>Axis as long as <select @change=${(event: Event) => this.#lab.change({ span: chosen(event) as ComparePath })}>
        ${comparePaths.map((path) => html`<option value=${path} ?selected=${path === span}>${pathTitles[path]}</option>`)}
      </select></label>`;
  }

  #shown(axis: Axis): TemplateResult {
    const player = this.#player;
    const text = (cycles: number): string => countText(cycles);
    return html`
      <p>One message of ${bytesText(this.#lab.state.message.sizeBytes)} from host 0 to host 1, each way on a machine of its own, after one that
        warmed it up. Each row is what the cores of a host do.</p>
      ${playerRow({
        player,
        playSeconds,
        instants: this.#instants,
        stepName: 'change',
        since: 'start',
        fromPs: axis.fromPs,
        toPs: axis.toPs,
        moved: () => this.#keep(),
        draw: () => this.#lab.draw(),
      })}
      ${timeAxis(axis, player.atPs, (ps) => this.#goTo(ps))}
      ${colourKey(this.#causes)}
      <h2>Where the cycles have gone until now</h2>
      ${stackedBars(this.#ledger(player.atPs), this.#causes, text)}
      <h2>All of it</h2>
      ${this.#table()}`;
  }

  /** Cycles by cause until an instant, and the current activity. */
  #ledger(atPs: number): AmountRow[] {
    return this.#pictures.flatMap(({ title, hosts }) =>
      hosts.map(({ work }, node) => {
        const now = work.filter(({ fromPs, toPs }) => fromPs <= atPs && atPs < toPs);
        return {
          title: `${title}, host ${node}`,
          parts: spentUntil(work, atPs),
          note: now.length === 0 ? 'idle' : now.map(({ cause }) => wordsOf(cause)).join(', '),
        };
      }),
    );
  }

  #table(): TemplateResult {
    const both = (
      picture: TransferPicture,
      what: 'cyclesTotal' | 'systemCalls' | 'interrupts' | 'contextSwitches' | 'copiedBytes',
    ): string => picture.hosts.map((host) => countText(host[what])).join(' / ');
    const titles = [
      'latency',
      'CPU cycles',
      'system calls',
      'interrupts',
      'context switches',
      'bytes copied',
    ];
    const figuresOf = (picture: TransferPicture): readonly string[] => [
      timeText(picture.latencyPs),
      both(picture, 'cyclesTotal'),
      both(picture, 'systemCalls'),
      both(picture, 'interrupts'),
      both(picture, 'contextSwitches'),
      both(picture, 'copiedBytes'),
    ];
    return html`<div class="scroll" tabindex="0" role="region" aria-label="All of it"><table class="ways">
      <thead><tr>${['way', ...titles].map((title) => html`<th scope="col">${title}</th>`)}</tr></thead>
      <tbody>${this.#pictures.map(
        (
          picture,
        ) => html`<tr><th scope="row">${picture.title}${picture.isEqual && picture.isBalanced ? nothing : html` <b class="warning">bytes differ or a ledger does not balance</b>`}</th>
          ${figuresOf(picture).map((figure, at) => html`<td data-label=${titles[at]!}>${figure}</td>`)}</tr>`,
      )}</tbody></table></div>
      <p class="dim">Host 0 / host 1, from the start until both sides have ended and heard of it.</p>`;
  }

  #goTo(atPs: number): void {
    this.#player.goTo(atPs);
    this.#keep();
  }

  #keep(): void {
    if (this.#lab.state.atPs !== this.#player.atPs) this.#lab.change({ atPs: this.#player.atPs });
  }
}

const cableColour = 13;

function axisOf(pictures: readonly TransferPicture[], causes: readonly string[], span: ComparePath): Axis {
  const endOf = ({ latencyPs, hosts }: TransferPicture): number =>
    Math.max(latencyPs, ...hosts.flatMap(({ work }) => work.map(({ toPs }) => toPs)));
  const spanned = pictures.find(({ path }) => path === span);
  const toPs = spanned === undefined ? Math.max(...pictures.map(endOf)) : endOf(spanned);
  const within = <Item extends { readonly fromPs: number; readonly toPs: number }>(
    items: readonly Item[],
  ): Item[] =>
    items.filter(({ fromPs }) => fromPs < toPs).map((item) => ({ ...item, toPs: Math.min(item.toPs, toPs) }));
  return {
    fromPs: 0,
    toPs,
    rows: pictures.flatMap(({ title, hosts, cable }) => {
      const ofHost = (node: 0 | 1) => ({
        title: `${title}, host ${node}`,
        items: within(joined(hosts[node].work, toPs)).map(({ fromPs, toPs: end, cause }) => ({
          fromPs,
          toPs: end,
          colour: colourNumber(causes, cause),
          title: `${wordsOf(cause)}, ${timeText(fromPs)} to ${timeText(end)}`,
        })),
      });
      const onCable = within(cable).map(({ fromPs, toPs: end, text }) => ({
        fromPs,
        toPs: end,
        colour: cableColour,
        title: `${text}, ${timeText(fromPs)}`,
      }));
      return [ofHost(0), { title: 'cable', items: onCable }, ofHost(1)];
    }),
  };
}

/** Merges parts of a row that are thinner than a hair, if only equal ones lie between them. */
const hairs = 2000;
function joined(work: readonly CoreWork[], toPs: number): CoreWork[] {
  const rows: CoreWork[] = [];
  for (const each of work) {
    const last = rows.at(-1);
    if (
      last !== undefined &&
      last.cause === each.cause &&
      last.core === each.core &&
      each.fromPs - last.toPs < toPs / hairs
    )
      rows[rows.length - 1] = { ...last, toPs: each.toPs };
    else rows.push(each);
  }
  return rows;
}
