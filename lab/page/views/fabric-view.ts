/**
 * "A fabric": traffic of many hosts over switches, instant by instant: the cables that send, the ports that wait, and the bytes in the
 * queues of the switches.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, countText, rateText, timeText } from '../../../explain/text/format.ts';
import {
  type FabricChoice,
  type FabricPicture,
  type FabricQuestion,
  fabricTopologies,
  fabricTraffic,
  type LabNetwork,
} from '../../protocol.ts';
import { Computation } from '../computation.ts';
import { busyShareAt, fabricDrawing, nodeName } from '../fabric-drawing.ts';
import { isWithin } from '../fabric-moment.ts';
import { levelAt } from '../moment.ts';
import { Player } from '../player.ts';
import { networkTitles } from '../scenario-titles.ts';
import { type Axis, type AxisRow, timeAxis } from '../time-axis.ts';
import type { Lab, View } from '../view.ts';
import { chosen, frame, playerRow, sizeField } from '../watched.ts';

const sizes = [64, 1024, 4096, 65_536, 262_144] as const;
const messageCounts = [1, 4, 16, 64] as const;
const playSeconds = 20;
/** Rows of the axis: the fullest queues. */
const queueRows = 12;
/** Colours of the axis: a packet that is sent, one that is lost. */
const [sendColour, lossColour] = [0, 3] as const;

export class FabricView implements View {
  readonly #lab: Lab;
  readonly #computation: Computation;
  readonly #player: Player;
  #picture: FabricPicture | undefined;
  #axis: Axis | undefined;
  #instants: readonly number[] = [];
  #asked = '';

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#computation = new Computation(() => lab.draw());
    this.#player = new Player(() => lab.draw());
  }

  changed(): void {
    const { machine, network, fabric, atPs } = this.#lab.state;
    const question = { machine, network, ...fabric };
    const asked = JSON.stringify(question);
    if (asked !== this.#asked) {
      this.#asked = asked;
      this.#player.pause();
      void this.#computation.run((isWanted) => this.#compute(question, isWanted));
    } else if (atPs !== this.#player.atPs) this.#player.goTo(atPs);
  }

  async #compute(question: FabricQuestion, isWanted: () => boolean): Promise<void> {
    const picture = await this.#lab.model.ask.fabric(question);
    if (isWanted()) this.#open(picture);
  }

  #open(picture: FabricPicture): void {
    this.#picture = picture;
    this.#axis = axisOf(picture);
    this.#instants = [
      ...new Set(picture.queues.flatMap(({ steps }) => steps.map(([atPs]) => atPs))),
    ].toSorted((left, right) => left - right);
    this.#computation.error = undefined;
    this.#player.spans(0, picture.toPs);
    this.#player.goTo(this.#lab.state.atPs);
  }

  draw(): TemplateResult {
    const picture = this.#picture;
    const shown =
      picture === undefined || this.#computation.error !== undefined ? undefined : this.#shown(picture);
    return frame(this.#computation, this.#fields(), shown);
  }

  #fields(): TemplateResult {
    const { network, fabric } = this.#lab.state;
    const change = (changes: Partial<FabricChoice>): void =>
      this.#lab.change({ fabric: { ...fabric, ...changes }, atPs: 0 });
    const topologies = [...new Set<string>([...fabricTopologies, fabric.topology])];
    const counts = [...new Set<number>([...messageCounts, fabric.messages])].toSorted((a, b) => a - b);
    return html`<label>Network <select @change=${(event: Event) => this.#lab.change({ network: chosen(event) as LabNetwork, atPs: 0 })}>
        ${Object.entries(networkTitles).map(([name, title]) => html`<option value=${name} ?selected=${name === network}>${title}</option>`)}
      </select></label>
      <label>Topology <select @change=${(event: Event) => change({ topology: chosen(event) })}>
        ${topologies.map((name) => html`<option ?selected=${name === fabric.topology}>${name}</option>`)}
      </select></label>
      <label>Traffic <select @change=${(event: Event) => change({ pattern: chosen(event) as FabricChoice['pattern'] })}>
        ${fabricTraffic.map((name) => html`<option ?selected=${name === fabric.pattern}>${name}</option>`)}
      </select></label>
      ${sizeField('Size', sizes, fabric.sizeBytes, (sizeBytes) => change({ sizeBytes }))}
      <label>Messages of a flow <select @change=${(event: Event) => change({ messages: Number(chosen(event)) })}>
        ${counts.map((count) => html`<option ?selected=${count === fabric.messages}>${count}</option>`)}
      </select></label>`;
  }

  #shown(picture: FabricPicture): TemplateResult {
    const { atPs } = this.#player;
    return html`
      ${verdict(picture, this.#lab.state.fabric)}
      ${playerRow({
        player: this.#player,
        playSeconds,
        instants: this.#instants,
        stepName: 'change of a queue',
        since: 'start',
        fromPs: 0,
        toPs: picture.toPs,
        moved: () => this.#keep(),
        draw: () => this.#lab.draw(),
      })}
      ${fabricDrawing(picture, atPs)}
      <p class="key"><span><i class="mark c${sendColour}"></i>a port sends: the stronger, the more of the time</span>
        <span><i class="mark c${lossColour}"></i>a port of a switch waits for credits, or for the end of a pause</span>
        <span><i class="mark c11"></i>bytes that wait at a port of a switch; a full gauge is ${bytesText(picture.gaugeBytes)}</span></p>
      ${timeAxis(this.#axis!, atPs, (ps) => {
        this.#player.goTo(ps);
        this.#keep();
      })}
      <div class="panes equal">
        <div class="results">${portsAt(picture, atPs)}</div>
        <div class="results">${flowsOf(picture)}</div>
      </div>`;
  }

  /** Stores the instant in the address. */
  #keep(): void {
    const { atPs } = this.#player;
    if (this.#lab.state.atPs !== atPs) this.#lab.change({ atPs });
  }
}

function verdict(picture: FabricPicture, { sizeBytes, messages }: FabricChoice): TemplateResult {
  const { flows, durationPs, bytesPerSecond, cableBytesPerSecond, fairness, losses } = picture;
  return html`<p>${countText(flows.length)} flows of ${countText(messages)} WRITEs of ${bytesText(sizeBytes)} end after
    <strong>${timeText(durationPs)}</strong>: <strong>${rateText(bytesPerSecond)}</strong> of payload together; the cable of one host carries
    ${rateText(cableBytesPerSecond)}. Fairness (Jain) is ${fairness.toFixed(3)}. Switches lost ${countText(losses.length)} packets.${
      picture.isEqual ? nothing : ' The bytes received differ from those sent.'
    }${picture.isBalanced ? nothing : ' The ledgers do not balance.'}</p>`;
}

/** Rows: the fullest queues as curves, with the lost packets; then what the ports with these queues send. */
function axisOf(picture: FabricPicture): Axis {
  const { queues, directions, losses, toPs } = picture;
  const fullest = queues
    .filter(({ mostBytes }) => mostBytes > 0)
    .toSorted((left, right) => right.mostBytes - left.mostBytes)
    .slice(0, queueRows);
  const lostAt = (node: number, port: number): AxisRow['items'] =>
    losses
      .filter((loss) => loss.node === node && loss.port === port)
      .map(({ atPs }) => ({
        fromPs: atPs,
        toPs: atPs,
        colour: lossColour,
        title: `lost, ${timeText(atPs)}`,
      }));
  const ofQueues = fullest.map(
    ({ node, port, name, steps }): AxisRow => ({
      title: `switch ${node}, ${name}`,
      items: lostAt(node, port),
      levels: steps,
    }),
  );
  const busiest = directions
    .toSorted((left, right) => lengthOf(right.sends) - lengthOf(left.sends))
    .slice(0, queueRows);
  const ofCables = busiest.map(
    ({ from, to, sends }): AxisRow => ({
      title: `${nodeName(picture, from.node)} to ${nodeName(picture, to.node)}`,
      items: blocksOf(sends, toPs),
    }),
  );
  return { fromPs: 0, toPs, rows: [...ofQueues, ...ofCables] };
}

const lengthOf = (spans: FabricPicture['directions'][number]['sends']): number =>
  spans.reduce((sum, ps, at) => sum + (at % 2 === 0 ? -ps : ps), 0);

/** Gaps shorter than a part of the axis are not drawn: thousands of packets would be as many elements. */
function blocksOf(spans: readonly number[], toPs: number): AxisRow['items'] {
  const gapPs = toPs / 500;
  const blocks: [fromPs: number, toPs: number][] = [];
  for (let at = 0; at < spans.length; at += 2) {
    const last = blocks.at(-1);
    if (last !== undefined && spans[at]! - last[1] < gapPs) last[1] = spans[at + 1]!;
    else blocks.push([spans[at]!, spans[at + 1]!]);
  }
  return blocks.map(([fromPs, untilPs]) => ({
    fromPs,
    toPs: untilPs,
    colour: sendColour,
    title: `sends, from ${timeText(fromPs)} to ${timeText(untilPs)}`,
  }));
}

/** The ports of switches at an instant: bytes that wait, and what their cable does. */
function portsAt(picture: FabricPicture, atPs: number): TemplateResult {
  const rows = picture.queues.map((queue) => {
    const direction = picture.directions.find(
      ({ from }) => from.node === queue.node && from.port === queue.port,
    );
    if (direction === undefined) return nothing;
    return html`<tr><th scope="row">switch ${queue.node}, port ${queue.port}</th>
      <td>${nodeName(picture, direction.to.node)}</td>
      <td>${bytesText(levelAt(queue, atPs) ?? 0)}</td><td>${bytesText(queue.mostBytes)}</td>
      <td>${Math.round(100 * busyShareAt(picture, direction, atPs))} %</td>
      <td>${isWithin(direction.waits, atPs) ? 'yes' : ''}</td></tr>`;
  });
  return html`<h2>Ports of switches</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Ports of switches"><table>
      <thead><tr><th scope="col">port</th><th scope="col">leads to</th><th scope="col">bytes now</th><th scope="col">most</th>
        <th scope="col">sends</th><th scope="col">waits for the far port</th></tr></thead>
      <tbody>${rows}</tbody></table></div>`;
}

function flowsOf({ flows }: FabricPicture): TemplateResult {
  return html`<h2>Flows</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Flows"><table>
      <thead><tr><th scope="col">from</th><th scope="col">to</th><th scope="col">payload rate</th>
        <th scope="col">median time of a message</th><th scope="col">99 % of them</th></tr></thead>
      <tbody>${flows.map(
        ({ from, to, bytesPerSecond, medianPs, p99Ps }) =>
          html`<tr><td>host ${from}</td><td>host ${to}</td><td>${rateText(bytesPerSecond)}</td><td>${timeText(medianPs)}</td><td>${timeText(p99Ps)}</td></tr>`,
      )}</tbody></table></div>`;
}
