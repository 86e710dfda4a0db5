/**
 * "What if": sliders of one machine, or of two side by side. The closed form updates immediately; simulated points
 * follow when the slider rests; a difference between the two is explained.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, timeText } from '../../../explain/text/format.ts';
import { wordsOf } from '../../../explain/text/words.ts';
import type { ParameterValue } from '../../../machine/profile/index.ts';
import {
  type Estimate,
  type LabMachine,
  type LabParameter,
  type LabVerb,
  labVerbs,
  type SimulatedLatency,
  type SimulatedRate,
} from '../../protocol.ts';
import { bars } from '../bars.ts';
import { Chart } from '../chart.ts';
import { Latest } from '../latest.ts';
import { type Slider, sliders, valuesOf } from '../sliders.ts';
import type { LabState } from '../state.ts';
import type { Lab, View } from '../view.ts';
import { chosen, messageOf, sizeField } from '../watched.ts';

/** Sizes simulated in addition to the requested one. */
const pointSizes = [1, 256, 4096, 65_536] as const;
const restMs = 120;
const rateQpCount = 8;
const sizes = [1, 8, 64, 220, 256, 1024, 2048, 4096, 16_384, 65_536] as const;
const inlines = [0, 64, 128, 220, 400] as const;

/** Results of one machine so far. */
interface Known {
  estimate?: Estimate;
  points: SimulatedLatency[];
  rate?: SimulatedRate;
  error?: string;
}

const sideNames = ['A', 'B'] as const;

export class WhatIfView implements View {
  readonly #lab: Lab;
  readonly #latest = new Latest();
  readonly #chart = new Chart('Latency over message size', 'bytes', 'µs');
  #known: Known[] = [];
  #parameters: readonly LabParameter[] = [];
  #profiles: readonly { readonly name: string; readonly doc: string }[] = [];
  #isComputing = false;

  constructor(lab: Lab) {
    this.#lab = lab;
  }

  changed(): void {
    void this.#compute();
  }

  get #side(): 0 | 1 {
    return this.#lab.state.other === undefined ? 0 : this.#lab.state.side;
  }

  get #machines(): readonly LabMachine[] {
    const { machine, other } = this.#lab.state;
    return other === undefined ? [machine] : [machine, other];
  }

  async #compute(): Promise<void> {
    const isWanted = this.#latest.begin();
    const { message } = this.#lab.state;
    const machines = this.#machines;
    const { form } = this.#lab.model;
    this.#isComputing = true;
    try {
      if (this.#profiles.length === 0) this.#profiles = await form.profiles();
      const paths = sliders.map(({ path }) => path);
      this.#parameters = await form.parameters(machines[this.#side]!.profile, paths);
      const known: Known[] = machines.map(() => ({ points: [] }));
      for (const [side, machine] of machines.entries()) {
        try {
          known[side]!.estimate = await form.estimate(machine, message);
        } catch (error) {
          known[side]!.error = messageOf(error);
        }
      }
      if (!isWanted()) return;
      this.#known = known;
      this.#lab.draw();
      await new Promise((resolve) => setTimeout(resolve, restMs));
      for (const [side, machine] of machines.entries())
        if (isWanted() && known[side]!.error === undefined)
          await this.#simulate(known[side]!, machine, isWanted);
    } finally {
      if (isWanted()) {
        this.#isComputing = false;
        this.#lab.draw();
      }
    }
  }

  /** The requested point first, then the rate, then the other sizes. */
  async #simulate(known: Known, machine: LabMachine, isWanted: () => boolean): Promise<void> {
    const { ask } = this.#lab.model;
    const { message } = this.#lab.state;
    try {
      for (const sizeBytes of [
        message.sizeBytes,
        ...pointSizes.filter((size) => size !== message.sizeBytes),
      ]) {
        if (!isWanted()) return;
        known.points.push(await ask.latency(machine, { ...message, sizeBytes }));
        if (!isWanted()) return;
        this.#lab.draw();
        if (known.rate === undefined) {
          known.rate = await ask.rate(machine, message, rateQpCount);
          if (isWanted()) this.#lab.draw();
        }
      }
    } catch (error) {
      known.error = messageOf(error);
      this.#lab.draw();
    }
  }

  draw(): TemplateResult {
    const { state } = this.#lab;
    return html`
      <section class="panes">
        <form class="side" aria-label="Machine and message" @submit=${(event: Event) => event.preventDefault()}>
          ${this.#messageFields(state)} ${this.#sides(state)} ${this.#sliders()}
        </form>
        <div class="results" aria-live="polite" aria-busy=${this.#isComputing}>
          ${this.#known.map((known, side) => this.#verdict(known, side))}
          ${this.#bars()}
          <h2>Over sizes</h2>
          <p class="dim">Lines are the closed form, points are simulated.</p>
          ${this.#chart.draw()}
          ${this.#table()}
        </div>
      </section>
    `;
  }

  drawn(): void {
    const curves = this.#known.flatMap(({ estimate, points }, side) =>
      estimate === undefined
        ? []
        : [
            {
              name: `${sideNames[side]}, closed form`,
              colour: side,
              points: estimate.curve.map(({ sizeBytes, ps }) => [sizeBytes, ps / 1e6] as const),
              isLine: true,
            },
            {
              name: `${sideNames[side]}, simulated`,
              colour: side,
              points: points.map(({ sizeBytes, meanPs }) => [sizeBytes, meanPs / 1e6] as const),
              isLine: false,
            },
          ],
    );
    this.#chart.show(curves);
  }

  #messageFields({ message }: LabState): TemplateResult {
    const change = (changes: Partial<typeof message>): void =>
      this.#lab.change({ message: { ...message, ...changes } });
    const options = <Value extends string | number>(
      values: readonly Value[],
      now: Value,
      text: (value: Value) => string,
    ) =>
      values.map((value) => html`<option value=${value} ?selected=${value === now}>${text(value)}</option>`);
    return html`<fieldset><legend>Message</legend>
      <label>Verb <select @change=${(event: Event) => change({ verb: chosen(event) as LabVerb })}>
        ${options(labVerbs, message.verb, (verb) => verb.toUpperCase())}</select></label>
      ${sizeField('Size', sizes, message.sizeBytes, (sizeBytes) => change({ sizeBytes }))}
      <label>MTU <select @change=${(event: Event) => change({ mtuBytes: Number(chosen(event)) })}>
        ${options([0, 256, 512, 1024, 2048, 4096], message.mtuBytes, (mtu) => (mtu === 0 ? 'of the port' : String(mtu)))}</select></label>
      <label>Inline up to <select @change=${(event: Event) => change({ inlineBytes: Number(chosen(event)) })}>
        ${options(inlines, message.inlineBytes, bytesText)}</select></label>
    </fieldset>`;
  }

  #sides({ machine, other }: LabState): TemplateResult {
    const machines = this.#machines;
    return html`<fieldset><legend>Machine</legend>
      <div class="row">
        ${machines.map(
          (
            _,
            side,
          ) => html`<button type="button" class="tab" aria-pressed=${side === this.#side} @click=${() => this.#lab.change({ side: side === 1 ? 1 : 0 })}>
          <i class="mark c${side}"></i>${sideNames[side]}</button>`,
        )}
        ${
          other === undefined
            ? html`<button type="button" @click=${() => this.#lab.change({ other: machine, side: 1 })}>Compare with another</button>`
            : html`<button type="button" @click=${() => this.#lab.change({ other: undefined, side: 0 })}>Remove B</button>`
        }
      </div>
      <label>Profile <select @change=${(event: Event) => this.#put({ ...this.#machine, profile: chosen(event), set: {} })}>
        ${this.#profiles.map(({ name, doc }) => html`<option value=${name} title=${doc} ?selected=${name === this.#machine.profile}>${name}</option>`)}
      </select></label>
      <button type="button" ?disabled=${Object.keys(this.#machine.set).length === 0} @click=${() => this.#put({ ...this.#machine, set: {} })}>As the profile has it</button>
    </fieldset>`;
  }

  get #machine(): LabMachine {
    return this.#machines[this.#side] ?? this.#lab.state.machine;
  }

  #put(machine: LabMachine): void {
    this.#lab.change(this.#side === 0 ? { machine } : { other: machine });
  }

  #sliders(): TemplateResult {
    return html`<fieldset><legend>Parameters of ${sideNames[this.#side]}</legend>
      ${sliders.flatMap((slider) => {
        const parameter = this.#parameters.find(({ path }) => path === slider.path);
        return parameter === undefined ? [] : [this.#slider(slider, parameter)];
      })}
    </fieldset>`;
  }

  #slider(slider: Slider, { unit, doc, path, source, default: profileValue }: LabParameter): TemplateResult {
    const machine = this.#machine;
    const value = machine.set[path] ?? profileValue;
    const values = valuesOf(slider, profileValue, value);
    const turn = (event: Event): void => {
      const next = values[Number(chosen(event))]!;
      const { [path]: _, ...rest } = machine.set;
      this.#put({ ...machine, set: next === profileValue ? rest : { ...rest, [path]: next } });
    };
    // The title "PCIe lanes" already names the unit.
    const text = valueText(value, slider.title.includes(unit) ? '' : unit);
    return html`<label class="slider" title="${path}: ${doc} (${source})">
      <span>${slider.title}${value === profileValue ? nothing : html` <b aria-label="changed">•</b>`}</span>
      <input type="range" min="0" max=${values.length - 1} .value=${String(values.indexOf(value))}
        aria-label=${slider.title} aria-valuetext=${text} @input=${turn}>
      <output>${text}</output>
    </label>`;
  }

  /** The difference of the two machines, and its cause. */
  #verdict({ estimate, points, rate, error }: Known, side: number): TemplateResult {
    if (error !== undefined) return html`<p class="warning" role="alert">${sideNames[side]}: ${error}</p>`;
    if (estimate === undefined) return html``;
    const { sizeBytes } = this.#lab.state.message;
    const point = points.find((each) => each.sizeBytes === sizeBytes);
    return html`<div class="verdict"><h2><i class="mark c${side}"></i>${sideNames[side]}</h2>
      <p><strong>${timeText(Math.round(estimate.totalPs))}</strong> by the closed form${
        point === undefined
          ? ', simulating …'
          : html`, <strong>${timeText(Math.round(point.meanPs))}</strong> simulated. ${distanceText(estimate, point)}`
      }</p>
      ${
        rate === undefined
          ? nothing
          : html`<p>Many at once, over ${rateQpCount} queue pairs: <strong>${(rate.messagesPerSecond / 1e6).toFixed(2)} million messages a second</strong>,
        ${((100 * rate.bytesPerSecond) / rate.cableBytesPerSecond).toFixed(0)} % of what the cable can carry in such messages. What keeps it there: ${rate.binds}${
          rate.next === '' ? '' : `; next, ${rate.next}`
        }. To raise it: ${rate.turn.join(', ')}.</p>`
      }
    </div>`;
  }

  #bars(): TemplateResult {
    const rows = this.#known.flatMap(({ estimate, points }, side) => {
      if (estimate === undefined) return [];
      const point = points.find(({ sizeBytes }) => sizeBytes === this.#lab.state.message.sizeBytes);
      const name = sideNames[side]!;
      return [
        { title: `${name}, closed form`, parts: estimate.terms },
        ...(point === undefined
          ? []
          : [{ title: `${name}, simulated to the completion`, parts: point.stages }]),
      ];
    });
    return rows.length === 0 ? html`` : html`<h2>Where the time goes</h2>${bars(rows)}`;
  }

  #table(): TemplateResult {
    const rows = this.#known.flatMap(({ estimate, points }, side) =>
      points
        .toSorted((left, right) => left.sizeBytes - right.sizeBytes)
        .map(({ sizeBytes, meanPs, firstPs }) => {
          const formPs = estimate?.curve.find((each) => each.sizeBytes === sizeBytes)?.ps;
          return html`<tr><th scope="row">${sideNames[side]}, ${bytesText(sizeBytes)}</th>
            <td>${formPs === undefined ? '–' : timeText(Math.round(formPs))}</td>
            <td>${timeText(Math.round(meanPs))}</td><td>${timeText(Math.round(firstPs))}</td></tr>`;
        }),
    );
    if (rows.length === 0) return html``;
    return html`<div class="scroll" tabindex="0" role="region" aria-label="Simulated latencies"><table>
      <thead><tr><th scope="col">machine, size</th><th scope="col">closed form</th><th scope="col">simulated</th><th scope="col">the first, cold</th></tr></thead>
      <tbody>${rows}</tbody></table></div>`;
  }
}

/** Half of the closed form's tolerance. */
const agreement = 0.015;

/**
 * The difference between closed form and simulation, with its name: the part of the time that an isolated message would
 * not have, and its bottleneck.
 */
function distanceText({ totalPs }: Estimate, { meanPs, stages }: SimulatedLatency): string {
  const difference = meanPs - totalPs;
  const share = Math.abs(difference) / totalPs;
  const percent = `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  const sumPs = stages.reduce((sum, { ps }) => sum + ps, 0);
  const most = stages.toSorted((left, right) => right.ps - left.ps)[0];
  const binds =
    most === undefined
      ? ''
      : ` What binds a single one: ${most.name === 'remote' ? 'the cable and the far device' : wordsOf(most.name)}, ${Math.round((100 * most.ps) / sumPs)} % of the time to the completion.`;
  if (share <= agreement)
    return `They agree within ${percent}: nothing queues, nothing waits for anything else.${binds}`;
  return difference > 0
    ? `The simulation takes ${timeText(Math.round(difference))} (${percent}) more: queueing, for what the closed form has on chip or free (lines of caches, tags, credits, the polling loop).${binds}`
    : `The simulation takes ${timeText(Math.round(-difference))} (${percent}) less: work that the closed form adds up overlaps.${binds}`;
}

function valueText(value: ParameterValue, unit: string): string {
  if (unit === 'ps') return timeText(Number(value));
  return unit === '' ? String(value) : `${value} ${unit}`;
}
