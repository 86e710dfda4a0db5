/**
 * "Write it yourself": a program for both hosts in an editor, run in steps of simulated time; findings of the linter and the watch of
 * buffers are shown at their lines.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js';
import { countText, timeText } from '../../../explain/text/format.ts';
import type {
  PostedOperation,
  ProgramOrder,
  ProgramProgress,
  ProgramRemark,
  ReachedName,
  StandingPlace,
} from '../../protocol.ts';
import { stopLineOf } from '../../stop-places.ts';
import { Editor } from '../editor.ts';
import { Latest } from '../latest.ts';
import { ProgramMoment } from '../program-moment.ts';
import { ProgramWorker } from '../program-worker.ts';
import { faultMenu, faultsIn, labPrograms, textOf } from '../programs.ts';
import type { Lab, View } from '../view.ts';
import { chosen, fromTheBegin, messageOf } from '../watched.ts';
import { postedTable } from './posted-table.ts';

/** Simulated time of one call of the worker while a program runs: short enough for the user to stop it in between. */
const turnPs = 200_000_000;
const steps = [
  { title: '10 ns', ps: 10_000 },
  { title: '100 ns', ps: 100_000 },
  { title: '1 µs', ps: 1_000_000 },
  { title: '10 µs', ps: 10_000_000 },
  { title: '1 ms', ps: 1_000_000_000 },
] as const;

type Phase = 'new' | 'standing' | 'running' | 'ended';

const theBegin: StandingPlace = { atPs: 0, reached: undefined };

/** Maximum number of breakpoints in an address. */
const breakpointsMax = 100;

/** The address fields of a program that has not run. */
const fromTheStart = { ranPs: 0, reached: undefined } as const;

const placeText = (ranPs: number, reached: ReachedName | undefined): string =>
  JSON.stringify([ranPs, reached]);

export class ProgramView implements View {
  readonly #lab: Lab;
  readonly #worker = new ProgramWorker();
  readonly #moment: ProgramMoment;
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
  /** Progress of the program according to the address. */
  #asked = '';
  /** Place where the program has stopped, or was stopped before it continued. */
  #stood = theBegin;
  /** Breakpoints of the worker's program if it has stopped at {@link #stood}; else undefined. */
  #loadedBreaks: string | undefined;
  /** Why a breakpoint moved to another line than requested. */
  #breakNote = '';

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#moment = new ProgramMoment(() => lab.draw());
    this.#editor = new Editor({
      edited: (text, breakpoints) => {
        if (text !== this.#text)
          this.#lab.change({ program: { text }, breakpoints, ...fromTheStart, posted: undefined });
      },
      toggle: (line) => this.#toggle(line),
      run: () => {
        if (this.#phase === 'new' || this.#phase === 'standing') this.#runOn();
      },
    });
  }

  get #text(): string {
    return textOf(this.#lab.state.program);
  }

  /** Resets the view for another program, machine or fault, and runs the program as far as the address requests. */
  changed(): void {
    const { machine, fault, ranPs, reached } = this.#lab.state;
    const shown = JSON.stringify([this.#text, machine, fault]);
    const asked = placeText(ranPs, reached);
    if (shown === this.#shown && asked === this.#asked) return;
    this.#asked = asked;
    this.#shown = shown;
    this.#reset();
    if (ranPs > 0) void this.#doing((isWanted) => this.#goTo({ atPs: ranPs, reached }, isWanted));
  }

  get #isStanding(): boolean {
    return this.#phase === 'standing';
  }

  /** Run time of the program for the address; a program stopped at an instant has run to the end of that instant. */
  get #ranPs(): number {
    const atPs = this.#progress?.atPs ?? 0;
    return this.#phase === 'ended' ? atPs + 1 : this.#phase === 'standing' ? atPs : 0;
  }

  #reset(): void {
    this.#latest.drop();
    this.#worker.stop();
    this.#moment.drop();
    this.#phase = 'new';
    this.#progress = undefined;
    this.#remarks = [];
    this.#operations = [];
    this.#firstShown = 0;
    this.#stood = theBegin;
    this.#loadedBreaks = undefined;
  }

  #runOn(): void {
    void this.#doing((isWanted) => this.#run(turnPs, Number.POSITIVE_INFINITY, isWanted));
  }

  /** Runs a possibly long action with the program, and reports its errors as findings. */
  async #doing(work: (isWanted: () => boolean) => Promise<void>): Promise<void> {
    const isWanted = this.#latest.begin();
    this.#moment.drop();
    this.#phase = 'running';
    this.#lab.draw();
    try {
      await work(isWanted);
      if (isWanted()) await this.#list(isWanted);
    } catch (error) {
      if (!isWanted()) return;
      this.#phase = 'ended';
      this.#loadedBreaks = undefined;
      this.#remarks = [{ line: undefined, severity: 'error', text: messageOf(error) }];
    }
    if (!isWanted()) return;
    if (this.#isStanding) void this.#moment.ask(this.#order, this.#stood.atPs);
    if (this.#progress?.hosts.length === 0 && this.#lab.state.breakpoints.length > 0)
      this.#breakNote = 'A program that exports main runs as a whole: it stops at no breakpoint.';
    this.#keep();
  }

  /** Continues, one period at a time, until an instant, a breakpoint or the end. */
  async #run(stepPs: number, untilPs: number, isWanted: () => boolean): Promise<void> {
    if (this.#loadedBreaks !== this.#breaks.join()) await this.#goTo(this.#stood, isWanted);
    if (!isWanted() || this.#phase === 'ended') return;
    const loaded = this.#loadedBreaks;
    this.#loadedBreaks = undefined;
    for (let atPs = this.#stood.atPs; atPs < untilPs; ) {
      const progress = await this.#worker.runFor(Math.min(stepPs, untilPs - atPs));
      if (!isWanted()) return;
      const { arrival } = progress;
      if (arrival !== undefined && arrival.atPs <= untilPs) {
        const { node, ordinal } = arrival;
        await this.#goTo({ atPs: arrival.atPs, reached: { node, ordinal } }, isWanted);
        return;
      }
      atPs = progress.atPs;
      this.#show(progress, progress.hasEnded ? 'ended' : atPs >= untilPs ? 'standing' : 'running');
      this.#stood = { atPs, reached: undefined };
      if (progress.hasEnded) return;
    }
    this.#loadedBreaks = loaded;
  }

  /** Loads the program and runs it to a place, where it stops unless it has ended earlier. */
  async #goTo(place: StandingPlace, isWanted: () => boolean): Promise<void> {
    this.#loadedBreaks = undefined;
    const breaks = this.#breaks;
    const wrong = await this.#worker.load({ ...this.#order, breakpoints: breaks, stood: place });
    if (!isWanted()) return;
    this.#remarks = wrong;
    if (wrong.length > 0) this.#phase = 'ended';
    for (let atPs = 0; this.#phase === 'running' && atPs < place.atPs; ) {
      const progress = await this.#worker.runFor(Math.min(turnPs, place.atPs - atPs));
      if (!isWanted()) return;
      atPs = progress.atPs;
      if (progress.hasEnded) this.#show(progress, 'ended');
      else if (atPs >= place.atPs) this.#show(progress, 'standing');
    }
    this.#stood = place;
    this.#loadedBreaks = breaks.join();
  }

  #show(progress: ProgramProgress, phase: Phase): void {
    this.#progress = progress;
    this.#remarks = progress.remarks;
    this.#phase = phase;
    // If it has stopped or ended, its operations are listed first.
    if (phase === 'running') this.#lab.draw();
  }

  get #order(): ProgramOrder {
    const { machine, fault } = this.#lab.state;
    return { text: this.#text, machine, faults: faultsIn(fault) };
  }

  /** Lines at which the breakpoints stop: after an edit, a breakpoint may be on a line that cannot stop. */
  get #breaks(): readonly number[] {
    const text = this.#text;
    return this.#lab.state.breakpoints.flatMap((line) => stopLineOf(text, line) ?? []);
  }

  /** Sets or clears the breakpoint of a line; for a line that cannot stop, uses the next one that can. */
  #toggle(line: number): void {
    const { breakpoints } = this.#lab.state;
    const stops = stopLineOf(this.#text, line);
    this.#breakNote = '';
    if (breakpoints.includes(line)) this.#setBreaks(breakpoints.filter((each) => each !== line));
    else if (stops === undefined)
      this.#breakNote = `No line from ${line} on can stop: breakpoints belong to lines of functions that run.`;
    else {
      if (stops !== line)
        this.#breakNote = `Line ${line} cannot stop by itself: the breakpoint is at line ${stops}.`;
      this.#setBreaks([...new Set([...breakpoints, stops])].toSorted((left, right) => left - right));
    }
    this.#lab.draw();
  }

  #setBreaks(breakpoints: readonly number[]): void {
    this.#lab.change({ breakpoints: breakpoints.slice(0, breakpointsMax) });
  }

  /** Requests the operations posted so far. */
  async #list(isWanted: () => boolean): Promise<void> {
    const operations = await this.#worker.operations();
    // The program's code may have run ahead of the stop.
    const isOver = ({ postedPs }: PostedOperation): boolean =>
      this.#phase === 'standing' && postedPs >= this.#stood.atPs;
    if (isWanted()) this.#operations = operations.filter((each) => !isOver(each));
  }

  /** Stores the progress in the address. */
  #keep(): void {
    const reached = this.#phase === 'standing' ? this.#stood.reached : undefined;
    this.#asked = placeText(this.#ranPs, reached);
    this.#lab.change({ ranPs: this.#ranPs, reached });
  }

  /** Stops the program at its present instant; terminates a program that does not return. */
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
    const step = (): void =>
      void this.#doing((isWanted) => this.#run(stepPs, this.#stood.atPs + stepPs, isWanted));
    const restart = (): void => {
      this.#reset();
      this.#keep();
    };
    const change = (changes: Partial<Lab['state']>): void =>
      this.#lab.change({ ...changes, ...fromTheStart, posted: undefined });
    return html`<section class="program">
      <div class="row">
        <label>Program <select @change=${(event: Event) => change({ program: { name: chosen(event) }, breakpoints: [] })}>
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
        <button class="main" ?disabled=${isDone} @click=${() => this.#runOn()}>${phase === 'standing' ? 'Continue' : 'Run'}</button>
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
      ${this.#breakpointRow()}
      <div class="panes wide">
        <div ${ref(this.#place)}></div>
        <div class="results">${this.#outcome()}</div>
      </div>
      ${this.#moment.draw()}
    </section>`;
  }

  /** Each breakpoint with a button that clears it. */
  #breakpointRow(): TemplateResult {
    const { breakpoints } = this.#lab.state;
    const text = this.#text;
    const words = (line: number): string => {
      const stops = stopLineOf(text, line);
      return stops === line ? '' : stops === undefined ? ', cannot stop' : `, stops at ${stops}`;
    };
    return html`<div class="row breaks">
      <span>${breakpoints.length === 0 ? 'No breakpoints: click left of a line, or press F9 in it.' : 'Breakpoints:'}</span>
      ${breakpoints.map(
        (line) =>
          html`<button aria-label="Clear the breakpoint of line ${line}" @click=${() => this.#toggle(line)}>line ${line}${words(line)} ✕</button>`,
      )}
      <span role="status">${this.#breakNote}</span></div>`;
  }

  drawn(): void {
    const place = this.#place.value;
    if (place === undefined) return;
    this.#editor.show(place, this.#text, this.#lab.state.breakpoints);
    this.#editor.showRemarks(this.#remarks, this.#phase === 'ended' ? [] : (this.#progress?.lines ?? []));
  }

  #status(): string {
    const at = this.#progress === undefined ? '' : ` at ${timeText(this.#progress.atPs)}`;
    const { reached } = this.#stood;
    const line = reached === undefined ? undefined : this.#progress?.lines[reached.node];
    const where = line === undefined ? '' : `, before line ${line} of host ${reached!.node}`;
    const words = {
      new: 'not started',
      standing: `standing${at}${where}`,
      running: `running${at}`,
      ended: `ended${at}`,
    };
    return words[this.#phase];
  }

  /** Returns the place where a host's program waits, marked in the editor. */
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
