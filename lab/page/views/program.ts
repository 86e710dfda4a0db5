/**
 * "Write it yourself": a program for both hosts in an editor, run in steps of simulated time; what the linter and the watch of buffers
 * find stands at its line.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js';
import { countText, timeText } from '../../../explain/text/format.ts';
import type { PostedOperation, ProgramProgress, ProgramRemark } from '../../protocol.ts';
import { Editor } from '../editor.ts';
import { Latest } from '../latest.ts';
import { ProgramWorker } from '../program-worker.ts';
import { faultMenu, faultsIn, labPrograms, textOf } from '../programs.ts';
import type { Lab, View } from '../view.ts';
import { chosen, fromTheBegin, messageOf } from '../watched.ts';
import { postedTable } from './posted-table.ts';

/** Simulated time of a turn of the worker while a program runs: short enough to be stopped in between. */
const turnPs = 200_000_000;
const steps = [
  { title: '10 ns', ps: 10_000 },
  { title: '100 ns', ps: 100_000 },
  { title: '1 µs', ps: 1_000_000 },
  { title: '10 µs', ps: 10_000_000 },
  { title: '1 ms', ps: 1_000_000_000 },
] as const;

type Phase = 'new' | 'standing' | 'running' | 'ended';

export class ProgramView implements View {
  readonly #lab: Lab;
  readonly #worker = new ProgramWorker();
  readonly #latest = new Latest();
  readonly #place: Ref<HTMLElement> = createRef();
  readonly #editor: Editor;
  #phase: Phase = 'new';
  #progress: ProgramProgress | undefined;
  #remarks: readonly ProgramRemark[] = [];
  #operations: readonly PostedOperation[] = [];
  /** Index of the first operation shown. */
  #firstShown = 0;
  #shown = '';
  #askedPs = 0;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#editor = new Editor((text) => {
      if (text !== this.#text) this.#lab.change({ program: { text }, ranPs: 0, posted: undefined });
    });
  }

  get #text(): string {
    return textOf(this.#lab.state.program);
  }

  /** Another program, machine or fault: what ran is of the one before. What an address says has run is run. */
  changed(): void {
    const { machine, fault, ranPs } = this.#lab.state;
    const shown = JSON.stringify([this.#text, machine, fault]);
    if (shown === this.#shown && ranPs === this.#askedPs) return;
    this.#shown = shown;
    this.#askedPs = ranPs;
    this.#reset();
    if (ranPs > 0) void this.#run(turnPs, ranPs);
  }

  /** How long the program has run, as an address says it; what ended at an instant has run until that one is over. */
  get #ranPs(): number {
    const atPs = this.#progress?.atPs ?? 0;
    return this.#phase === 'ended' ? atPs + 1 : this.#phase === 'standing' ? atPs : 0;
  }

  #reset(): void {
    this.#latest.drop();
    this.#worker.stop();
    this.#phase = 'new';
    this.#progress = undefined;
    this.#remarks = [];
    this.#operations = [];
    this.#firstShown = 0;
  }

  /** Runs on, so far at a time, until an instant or the end. */
  async #run(stepPs: number, untilPs: number): Promise<void> {
    const isWanted = this.#latest.begin();
    try {
      if (this.#phase === 'new' && !(await this.#load(isWanted))) return;
      this.#phase = 'running';
      this.#lab.draw();
      while (this.#phase === 'running') {
        const atPs = this.#progress?.atPs ?? 0;
        const progress = await this.#worker.runFor(Math.min(stepPs, untilPs - atPs));
        if (!isWanted()) return;
        this.#progress = progress;
        this.#remarks = progress.remarks;
        this.#phase = progress.hasEnded ? 'ended' : progress.atPs >= untilPs ? 'standing' : 'running';
        if (this.#phase !== 'running') await this.#list(isWanted);
        this.#lab.draw();
      }
    } catch (error) {
      if (!isWanted()) return;
      this.#phase = 'ended';
      this.#remarks = [{ line: undefined, severity: 'error', text: messageOf(error) }];
    } finally {
      if (isWanted()) this.#keep();
    }
  }

  /** Asks for what has been posted so far. */
  async #list(isWanted: () => boolean): Promise<void> {
    const operations = await this.#worker.operations();
    if (isWanted()) this.#operations = operations;
  }

  /** @returns whether the program can be run */
  async #load(isWanted: () => boolean): Promise<boolean> {
    const { machine, fault } = this.#lab.state;
    this.#phase = 'running';
    this.#lab.draw();
    const wrong = await this.#worker.load({ text: this.#text, machine, faults: faultsIn(fault) });
    if (!isWanted()) return false;
    this.#remarks = wrong;
    if (wrong.length > 0) this.#phase = 'ended';
    return wrong.length === 0;
  }

  /** How far it has come belongs into the address. */
  #keep(): void {
    this.#askedPs = this.#ranPs;
    this.#lab.change({ ranPs: this.#askedPs });
  }

  /** Stands where it is; a program that does not come back is ended. */
  #stop(): void {
    this.#latest.drop();
    if (this.#phase === 'running') this.#phase = this.#progress === undefined ? 'new' : 'standing';
    if (this.#phase === 'new') this.#worker.stop();
    else void this.#list(this.#latest.begin()).then(() => this.#lab.draw());
    this.#keep();
  }

  draw(): TemplateResult {
    const { program, machine, fault, stepPs } = this.#lab.state;
    const phase = this.#phase;
    const isDone = phase === 'running' || phase === 'ended';
    const run = (): void => void this.#run(turnPs, Number.POSITIVE_INFINITY);
    const step = (): void => void this.#run(stepPs, (this.#progress?.atPs ?? 0) + stepPs);
    const restart = (): void => {
      this.#reset();
      this.#keep();
    };
    const change = (changes: Partial<Lab['state']>): void =>
      this.#lab.change({ ...changes, ranPs: 0, posted: undefined });
    return html`<section class="program">
      <div class="row">
        <label>Program <select @change=${(event: Event) => change({ program: { name: chosen(event) } })}>
          ${'text' in program ? html`<option selected>your own</option>` : nothing}
          ${labPrograms.map(({ name, title }) => html`<option value=${name} ?selected=${'name' in program && program.name === name}>${title}</option>`)}
        </select></label>
        <label>Fault <select @change=${(event: Event) => change({ fault: chosen(event) })}>
          ${[
            ...faultMenu,
            ...(faultMenu.some(({ text }) => text === fault) ? [] : [{ text: fault, title: fault }]),
          ].map(
            ({ text, title }) => html`<option value=${text} ?selected=${text === fault}>${title}</option>`,
          )}
        </select></label>
        <label>Seed <input type="number" min="0" max="4294967295" .value=${String(machine.seed)}
          @change=${(event: Event) => change({ machine: { ...machine, seed: Number(chosen(event)) } })}></label>
      </div>
      <div class="row">
        <button class="main" ?disabled=${isDone} @click=${run}>Run</button>
        <button ?disabled=${isDone} @click=${step}>Step</button>
        <label>of <select @change=${(event: Event) => this.#lab.change({ stepPs: Number(chosen(event)) })}>
          ${[
            ...steps,
            ...(steps.some(({ ps }) => ps === stepPs) ? [] : [{ title: timeText(stepPs), ps: stepPs }]),
          ].map(
            ({ title, ps }) => html`<option value=${ps} ?selected=${ps === stepPs}>${title}</option>`,
          )}</select></label>
        <button ?disabled=${phase !== 'running'} @click=${() => this.#stop()}>Stop</button>
        <button ?disabled=${phase === 'new'} @click=${restart}>Restart</button>
        <span role="status">${this.#status()}</span>
      </div>
      <div class="panes wide">
        <div ${ref(this.#place)}></div>
        <div class="results">${this.#outcome()}</div>
      </div>
    </section>`;
  }

  drawn(): void {
    const place = this.#place.value;
    if (place === undefined) return;
    this.#editor.show(place, this.#text);
    this.#editor.showRemarks(this.#remarks, this.#phase === 'ended' ? [] : (this.#progress?.lines ?? []));
  }

  #status(): string {
    const at = this.#progress === undefined ? '' : ` at ${timeText(this.#progress.atPs)}`;
    const words = {
      new: 'not started',
      standing: `standing${at}`,
      running: `running${at}`,
      ended: `ended${at}`,
    };
    return words[this.#phase];
  }

  /** Where the program of a host waits, as the editor marks it. */
  #placeOf(host: number): string {
    const line = this.#phase === 'ended' ? undefined : this.#progress?.lines[host];
    return line === undefined ? '' : ` at line ${line}`;
  }

  #outcome(): TemplateResult {
    const progress = this.#progress;
    return html`
      ${
        this.#remarks.length === 0
          ? progress?.hasEnded === true
            ? html`<p>No finding of the linter, nor of the watch of buffers.</p>`
            : nothing
          : html`<h2>Findings</h2><ul class="remarks">${this.#remarks.map(
              ({ line, severity, text }) =>
                html`<li class=${severity}>${line === undefined ? nothing : html`<b>line ${line}</b>: `}${text}</li>`,
            )}</ul>`
      }
      ${
        progress === undefined
          ? html`<p class="dim">A program exports <code>host0</code> and <code>host1</code>: functions of the two hosts, which speak the verbs of libibverbs and wait only for simulated time.</p>`
          : html`
          ${
            progress.results.some((result) => result !== undefined)
              ? html`<h2>Results</h2>${progress.results.map((result, host) => (result === undefined ? nothing : html`<pre>host ${host}: ${result}</pre>`))}`
              : nothing
          }
          ${postedTable(this.#operations, this.#firstShown, {
            show: (posted) => this.#lab.change({ view: 'operation', posted, ...fromTheBegin }),
            goTo: (first) => {
              this.#firstShown = first;
              this.#lab.draw();
            },
          })}
          ${progress.log.length === 0 ? nothing : html`<h2>Log</h2><pre class="log" tabindex="0">${progress.log.map(({ node, atPs, text }) => `${timeText(atPs)}  host ${node}  ${text}\n`)}</pre>`}
          ${
            progress.hosts.length === 0
              ? nothing
              : html`<h2>So far</h2>
            <p>${
              Object.entries(progress.operations)
                .map(([name, count]) => `${countText(count)} ${name}`)
                .join(', ') || 'No operation has completed'
            }.</p>
            ${progress.hosts.map(({ systemCalls, interrupts }, host) => html`<p>Host ${host}${this.#placeOf(host)}: ${countText(systemCalls)} system calls, ${countText(interrupts)} interrupts.</p>`)}`
          }
        `
      }`;
  }
}
