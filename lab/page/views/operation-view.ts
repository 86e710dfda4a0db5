/**
 * "One operation, as it happens": a request from its post to its completion, instant by instant: the activity of each
 * block, the position of every TLP and packet, and decoded bytes.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import type { DiagramLayout } from '../../../explain/diagram/index.ts';
import { bytesText, timeText } from '../../../explain/text/format.ts';
import { wordsOf } from '../../../explain/text/words.ts';
import type {
  LabNetwork,
  OperationOutcome,
  OperationPicture,
  OperationQuestion,
  PictureRecord,
  ScenarioName,
} from '../../protocol.ts';
import { Computation } from '../computation.ts';
import { colourKey, colourOf, diagram } from '../diagram.ts';
import { hasWidthAcross, layoutOfPicture } from '../diagram-layout.ts';
import { eventDetails } from '../event-details.ts';
import { happeningAt, instantsOf, levelAt, recordsOfCell, underWay } from '../moment.ts';
import { Player } from '../player.ts';
import { programPicture } from '../program-picture.ts';
import { ProgramWorker } from '../program-worker.ts';
import { faultsIn, textOf } from '../programs.ts';
import { networkTitles, scenarioTitles } from '../scenario-titles.ts';
import { timeAxis } from '../time-axis.ts';
import type { Lab, View } from '../view.ts';
import { chosen, frame, fromTheBegin, nsText, playerRow, sizeField } from '../watched.ts';
import { axisOf, levelWords } from './operation-axis.ts';

const sizes = [8, 64, 256, 1024, 4096, 16_384, 65_536] as const;
/** Playing time of a whole operation. */
const playSeconds = 20;
/** The reader counts as resting after no movement for this long. */
const restMs = 300;
/** Number of events of one instant that are shown with all their bytes. */
const detailsMax = 6;

export class OperationView implements View {
  readonly #lab: Lab;
  readonly #computation: Computation;
  /** Worker that runs the programs of the watched operations. */
  readonly #worker = new ProgramWorker();
  readonly #player: Player;
  #picture: OperationPicture | undefined;
  /** The same picture with the opposite state of the caches. */
  #other: OperationOutcome | undefined;
  #axis: ReturnType<typeof axisOf> | undefined;
  /** Number of instants shown so far. */
  #moveCount = 0;
  #asked = '';
  #steps:
    | { readonly of: string; readonly picture: OperationPicture; readonly instants: readonly number[] }
    | undefined;
  #layout:
    | { readonly layout: DiagramLayout; readonly picture: OperationPicture; readonly isAcross: boolean }
    | undefined;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#computation = new Computation(() => lab.draw());
    this.#player = new Player(() => {
      this.#moveCount++;
      lab.draw();
    });
    addEventListener('resize', () => lab.draw());
  }

  changed(): void {
    const { machine, message, scenario, network, isWarm, atPs, posted, program, fault } = this.#lab.state;
    const { sizeBytes, mtuBytes } = message;
    const question = { machine, scenario, network, sizeBytes, mtuBytes, isWarm };
    const order = { text: textOf(program), machine, faults: faultsIn(fault) };
    const asked = JSON.stringify(posted === undefined ? question : [posted, order]);
    if (asked !== this.#asked) {
      this.#asked = asked;
      this.#worker.stop();
      this.#other = undefined;
      this.#player.pause();
      void this.#computation.run(async (isWanted) => {
        if (posted === undefined) return this.#scenario(question, isWanted);
        const picture = await programPicture(this.#worker, order, posted, isWanted);
        if (picture !== undefined && isWanted()) this.#open(picture);
      });
    } else if (atPs !== this.#player.atPs) this.#player.goTo(atPs);
  }

  async #scenario(question: OperationQuestion, isWanted: () => boolean): Promise<void> {
    const { ask } = this.#lab.model;
    const picture = await ask.operation(question);
    if (!isWanted()) return;
    this.#open(picture);
    // The comparison's simulation would compete for processors with the drawing and the reader's steps.
    await this.#rest();
    if (!isWanted()) return;
    const other = await ask.outcome({ ...question, isWarm: !question.isWarm });
    if (isWanted()) this.#other = other;
  }

  #open(picture: OperationPicture): void {
    this.#picture = picture;
    this.#axis = axisOf(picture);
    this.#computation.error = undefined;
    this.#player.spans(picture.fromPs, picture.toPs);
    this.#player.goTo(this.#lab.state.atPs);
    this.#computation.isRunning = false;
    this.#lab.draw();
  }

  /** Waits until the reader rests at one instant. */
  async #rest(): Promise<void> {
    for (let before = -1; before !== this.#moveCount; ) {
      before = this.#moveCount;
      await new Promise((resolve) => setTimeout(resolve, restMs));
    }
  }

  draw(): TemplateResult {
    const picture = this.#picture;
    const shown =
      picture === undefined || this.#computation.error !== undefined
        ? undefined
        : this.#shownPicture(picture);
    return frame(this.#computation, this.#fields(), shown);
  }

  #fields(): TemplateResult {
    const { scenario, posted } = this.#lab.state;
    const change = (changes: Partial<Lab['state']>): void =>
      this.#lab.change({ posted: undefined, ...changes, ...fromTheBegin });
    return html`<label>Operation <select @change=${(event: Event) => change({ scenario: chosen(event) as ScenarioName })}>
        ${posted === undefined ? nothing : html`<option selected>of the program: host ${posted.node}, number ${posted.ordinal}</option>`}
        ${Object.entries(scenarioTitles).map(([name, title]) => html`<option value=${name} ?selected=${posted === undefined && name === scenario}>${title}</option>`)}
      </select></label>
      ${posted === undefined ? this.#networkSizeAndCaches(change) : html`<button @click=${() => this.#lab.change({ view: 'program' })}>Back to the program</button>`}`;
  }

  #networkSizeAndCaches(change: (changes: Partial<Lab['state']>) => void): TemplateResult {
    const { message, network, isWarm } = this.#lab.state;
    return html`<label>Network <select @change=${(event: Event) => change({ network: chosen(event) as LabNetwork })}>
        ${Object.entries(networkTitles).map(([name, title]) => html`<option value=${name} ?selected=${name === network}>${title}</option>`)}
      </select></label>
      ${sizeField('Size', sizes, message.sizeBytes, (sizeBytes) => change({ message: { ...message, sizeBytes } }))}
      <label>Caches <select @change=${(event: Event) => change({ isWarm: chosen(event) === 'warm' })}>
        <option value="cold" ?selected=${!isWarm}>cold: the first of its kind</option>
        <option value="warm" ?selected=${isWarm}>warm: the fourth</option>
      </select></label>`;
  }

  /** The event that the address names, if the operation has that many. */
  #shown({ records }: OperationPicture): PictureRecord | undefined {
    const { event } = this.#lab.state;
    return event === undefined ? undefined : records[event];
  }

  #show(picture: OperationPicture, record: PictureRecord): void {
    this.#player.pause();
    this.#lab.change({ event: picture.records.indexOf(record), atPs: this.#player.atPs });
  }

  /** Records to step through: all, or those of the chosen block. */
  #instantsOf(picture: OperationPicture): readonly number[] {
    const { block } = this.#lab.state;
    if (this.#steps?.of !== block || this.#steps.picture !== picture) {
      const [process, ...name] = block.split(' ');
      const own = block === '' ? undefined : recordsOfCell(picture, process!, name.join(' '));
      this.#steps = { of: block, picture, instants: instantsOf(picture, own) };
    }
    return this.#steps.instants;
  }

  #shownPicture(picture: OperationPicture): TemplateResult {
    const { atPs } = this.#player;
    const { block, event } = this.#lab.state;
    return html`
      ${this.#verdict(picture)}
      ${
        event === undefined || event < picture.records.length
          ? nothing
          : html`<p class="warning" role="alert">The address names event ${event}, of which this operation has ${picture.records.length}.</p>`
      }
      ${this.#controls(picture)}
      ${diagram(
        picture,
        this.#layoutOf(picture),
        atPs,
        `${timeText(atPs)} after the post`,
        { block, shown: this.#shown(picture) },
        {
          choose: (process, name) =>
            this.#lab.change({ block: block === `${process} ${name}` ? '' : `${process} ${name}` }),
          show: (record) => this.#show(picture, record),
        },
      )}
      <p class="key">${colourKey.map(([text, colour]) => html`<span><i class="mark c${colour}"></i>${text}</span>`)}</p>
      ${timeAxis(this.#axis!, atPs, (ps) => this.#goTo(ps))}
      <div class="panes equal">
        <div class="results">${this.#happening(picture, atPs)}</div>
        <div class="results">${this.#milestones(picture, atPs)}${levels(picture, atPs)}</div>
      </div>`;
  }

  #verdict(picture: OperationPicture): TemplateResult {
    const {
      operation,
      node,
      payloadBytes,
      latencyPs,
      status,
      hits,
      misses,
      cqePs,
      lastBytesPs,
      others,
      isBalanced,
    } = picture;
    return html`<p><strong>${operation}</strong> of ${bytesText(payloadBytes)} by host ${node}: <strong>${timeText(latencyPs)}</strong> from the post to the completion, status ${status}.
      The devices looked ${hits + misses} times into their caches and missed ${misses} times. ${this.#saving(picture)}${others === 0 ? nothing : ` Other operations were under way meanwhile: ${others}. Blocks and links are drawn with the work for all of them.`}${isBalanced ? nothing : ' The ledgers do not balance.'}</p>
      ${
        cqePs === undefined || lastBytesPs === undefined
          ? nothing
          : html`<p>${
              cqePs < lastBytesPs
                ? html`The sender’s CQE is in its memory <strong>${timeText(lastBytesPs - cqePs)} before</strong> the last bytes are in the memory that they are for:`
                : html`The last bytes are in their memory ${timeText(cqePs - lastBytesPs)} before the CQE is in the sender’s:`
            } <button @click=${() => this.#goTo(Math.min(cqePs, lastBytesPs))}>show this frame</button></p>`
      }`;
  }

  /** Time saved by the caches, if the other picture is available. */
  #saving({ latencyPs, misses }: OperationPicture): TemplateResult {
    const other = this.#other;
    if (other === undefined) return html``;
    const { isWarm } = this.#lab.state;
    const [warm, cold] = isWarm ? [{ latencyPs, misses }, other] : [other, { latencyPs, misses }];
    const savedPs = cold.latencyPs - warm.latencyPs;
    return html`${isWarm ? 'Cold' : 'Warm'} it takes ${timeText(other.latencyPs)} with ${other.misses} misses: ${
      savedPs >= 0 ? `the caches save ${timeText(savedPs)}` : `warm it takes ${timeText(-savedPs)} more`
    }.`;
  }

  #controls(picture: OperationPicture): TemplateResult {
    const { block } = this.#lab.state;
    const { cells } = this.#layoutOf(picture);
    return playerRow({
      player: this.#player,
      playSeconds,
      instants: this.#instantsOf(picture),
      stepName: block === '' ? 'event' : `event of ${block}`,
      since: 'post',
      fromPs: picture.fromPs,
      toPs: picture.toPs,
      moved: () => this.#keep(),
      draw: () => this.#lab.draw(),
      more: html`<label>Steps of <select @change=${(event: Event) => this.#lab.change({ block: chosen(event) })}>
        <option value="" ?selected=${block === ''}>everything</option>
        ${cells.map(({ process, name }) => {
          const value = `${process} ${name}`;
          return html`<option value=${value} ?selected=${block === value}>${process} ${wordsOf(name)}</option>`;
        })}
      </select></label>`,
    });
  }

  /** Records that begin or take effect now, with their bytes; or the chosen record. */
  #happening(picture: OperationPicture, atPs: number): TemplateResult {
    const shown = this.#shown(picture);
    const records = shown === undefined ? happeningAt(picture, atPs) : [shown];
    const moving = underWay(picture, atPs);
    return html`<h2>${shown === undefined ? 'At this instant' : 'Chosen'}</h2>
      ${records.length === 0 ? html`<p class="dim">Nothing begins or takes effect at this very instant.</p>` : nothing}
      ${records.slice(0, detailsMax).map((record) => eventDetails(picture, record, atPs))}
      ${records.length > detailsMax ? html`<p class="dim">… and ${records.length - detailsMax} more.</p>` : nothing}
      <h2>On the way now</h2>
      ${
        moving.length === 0
          ? html`<p class="dim">Nothing.</p>`
          : html`<ul class="plain">${moving.map(({ record }) => {
              const { process } = picture.tracks[record.track]!;
              return html`<li><button class="link" @click=${() => this.#show(picture, record)}><i class="mark c${colourOf(record)}"></i>${record.label} to ${process}</button></li>`;
            })}</ul>`
      }`;
  }

  #milestones({ milestones, stages }: OperationPicture, atPs: number): TemplateResult {
    const stage = stages.find(({ fromPs, toPs }) => fromPs <= atPs && atPs < toPs);
    return html`<h2>Milestones</h2>
      <ol class="plain milestones">${milestones.map(
        (
          milestone,
        ) => html`<li class=${milestone.atPs <= atPs ? 'past' : ''}><button class="link" @click=${() => this.#goTo(milestone.atPs)}>
          <span class="figure">${nsText(milestone.atPs)}</span> ${milestone.text}</button></li>`,
      )}</ol>
      ${stage === undefined ? nothing : html`<p><b>${stage.name}</b>, ${timeText(stage.toPs - stage.fromPs)}: ${stage.text}</p>`}`;
  }

  #goTo(atPs: number): void {
    this.#player.goTo(atPs);
    this.#keep();
  }

  /** Stores the instant in the address; a choice made at another instant is cleared. */
  #keep(): void {
    const { atPs } = this.#player;
    const { state } = this.#lab;
    if (state.atPs !== atPs || state.event !== undefined) this.#lab.change({ atPs, event: undefined });
  }

  #layoutOf(picture: OperationPicture): DiagramLayout {
    const isAcross = hasWidthAcross();
    const known = this.#layout;
    if (known !== undefined && known.picture === picture && known.isAcross === isAcross) return known.layout;
    const layout = layoutOfPicture(picture, isAcross);
    this.#layout = { layout, picture, isAcross };
    return layout;
  }
}

/** Levels of queues, and credit limits. */
function levels(picture: OperationPicture, atPs: number): TemplateResult {
  const rows = picture.levels.flatMap((level) => {
    const value = levelAt(level, atPs);
    const most = Math.max(...level.steps.map(([, each]) => each));
    return value === undefined
      ? []
      : [
          html`<tr><th scope="row">${level.process}, ${levelWords(level.name)}</th><td>${value}</td><td>${most}</td></tr>`,
        ];
  });
  return html`<h2>Queues and credits</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Queues and credits"><table>
      <thead><tr><th scope="col">of those that change</th><th scope="col">now</th><th scope="col">most</th></tr></thead>
      <tbody>${rows}</tbody></table></div>`;
}
