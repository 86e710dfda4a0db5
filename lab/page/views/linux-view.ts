/**
 * "A stock Linux": terminals of one or two hosts, whose processors and devices are simulated in a worker; the block diagram next to
 * them, and the commands of the drivers as they end. It pauses after any step, continues to the next event, and goes back by
 * running from its snapshot again, with the same inputs.
 */
import { proxy, type Remote, wrap } from 'comlink';
import { html, nothing, type TemplateResult } from 'lit-html';
import { createRef, type Ref, ref } from 'lit-html/directives/ref.js';
import { countText, timeText } from '../../../explain/text/format.ts';
import terminalStyle from '../../../node_modules/@xterm/xterm/css/xterm.css?raw';
import {
  type LabLinux,
  type LinuxEvent,
  type LinuxInput,
  type LinuxMoment,
  type LinuxProgress,
  type LinuxSnapshotState,
  linuxEvents,
} from '../../protocol.ts';
import { colourKey, diagram } from '../diagram.ts';
import { hasWidthAcross, layoutOfPicture, withoutFarSide } from '../diagram-layout.ts';
import { eventDetails } from '../event-details.ts';
import { Latest } from '../latest.ts';
import { LinuxTerminals } from '../linux-terminals.ts';
import { happeningAt, instantsOf } from '../moment.ts';
import { Player } from '../player.ts';
import type { Lab, View } from '../view.ts';
import { chosen, messageOf, playerRow } from '../watched.ts';

const eventTitles: Readonly<Record<LinuxEvent, string>> = {
  commands: 'command',
  doorbells: 'doorbell',
  dma: 'DMA read',
  events: 'CQE or EQE',
  interrupts: 'interrupt',
};
/** Time between two pictures of a running machine. */
const pictureMs = 400;
const askAgainMs = 500;
const playSeconds = 10;
const commandsMax = 200;
const detailsMax = 6;
const psPerSecond = 1e12;

export class LinuxView implements View {
  readonly #lab: Lab;
  readonly #latest = new Latest();
  readonly #player: Player;
  readonly #terminals: LinuxTerminals;
  readonly #places: readonly Ref<HTMLElement>[] = [createRef(), createRef()];
  #worker: Remote<LabLinux> | undefined;
  #snapshot: LinuxSnapshotState | undefined;
  /** Whether a server was asked for the snapshot, and has none. */
  #hasNoServer = false;
  #progress: LinuxProgress | undefined;
  #moment: LinuxMoment | undefined;
  #momentMs = 0;
  #momentStep = -1;
  #commands: readonly string[] = [];
  /** Step to which the machine runs again, when it goes back. */
  #goesTo: number | undefined;
  #error: string | undefined;
  #asked = '';
  /** The reader shows another view: the machine pauses until the return. */
  #isAway = false;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#player = new Player(() => lab.draw());
    this.#terminals = new LinuxTerminals((host, text) => void this.#worker?.type(host, text));
    const style = document.createElement('style');
    style.textContent = terminalStyle;
    document.head.append(style);
  }

  changed(): void {
    if (this.#isAway) {
      this.#isAway = false;
      void this.#linux.resume();
    }
    const { hosts, machine } = this.#lab.state;
    const asked = `${hosts} ${machine.seed}`;
    if (asked === this.#asked) return;
    this.#asked = asked;
    void this.#start([], undefined);
  }

  get #linux(): Remote<LabLinux> {
    this.#worker ??= wrap<LabLinux>(
      new Worker(new URL('./linux.worker.js', import.meta.url), { type: 'module', name: 'linux' }),
    );
    return this.#worker;
  }

  /** Starts a machine from the snapshot. @param stopAtStep where it pauses; left out: it runs on */
  async #start(inputs: readonly LinuxInput[], stopAtStep: number | undefined): Promise<void> {
    const isWanted = this.#latest.begin();
    const { hosts, machine } = this.#lab.state;
    this.#progress = undefined;
    this.#moment = undefined;
    this.#momentStep = -1;
    this.#commands = [];
    this.#error = undefined;
    this.#goesTo = stopAtStep;
    this.#terminals.clear();
    this.#lab.draw();
    try {
      if (!(await this.#isThere(isWanted))) return;
      const order = { hosts, seed: machine.seed, inputs };
      await this.#linux.run(
        stopAtStep === undefined ? order : { ...order, stopAtStep },
        proxy((progress: LinuxProgress) => {
          if (isWanted()) this.#take(progress, isWanted);
        }),
      );
    } catch (error) {
      if (isWanted()) this.#error = messageOf(error);
    }
    if (isWanted()) this.#lab.draw();
  }

  /** Waits until the snapshot is there. */
  async #isThere(isWanted: () => boolean): Promise<boolean> {
    for (;;) {
      const state = await this.#linux.snapshotState();
      if (!isWanted()) return false;
      this.#snapshot = state;
      this.#hasNoServer = state === undefined;
      this.#lab.draw();
      if (state === undefined) return false;
      if (state.phase === 'ready') return true;
      await new Promise((resolve) => setTimeout(resolve, askAgainMs));
      if (!isWanted()) return false;
    }
  }

  #take(progress: LinuxProgress, isWanted: () => boolean): void {
    this.#progress = progress;
    if (this.#lab.state.view !== 'linux' && progress.phase === 'running' && this.#goesTo === undefined) {
      this.#isAway = true;
      void this.#linux.pause();
    }
    for (const [host, text] of progress.said.entries()) this.#terminals.write(host, text);
    if (progress.commands.length > 0)
      this.#commands = [...this.#commands, ...progress.commands].slice(-commandsMax);
    if (progress.step === this.#goesTo) this.#goesTo = undefined;
    const isDue = progress.phase === 'paused' || performance.now() - this.#momentMs > pictureMs;
    if (isDue && progress.step !== this.#momentStep && this.#goesTo === undefined) void this.#draw(isWanted);
    this.#lab.draw();
  }

  /** Requests the picture of the present instant. */
  async #draw(isWanted: () => boolean): Promise<void> {
    this.#momentMs = performance.now();
    this.#momentStep = this.#progress?.step ?? -1;
    const moment = await this.#linux.moment();
    if (!isWanted() || moment === undefined) return;
    this.#moment = moment;
    this.#player.spans(moment.fromPs, 0);
    this.#player.goTo(latestOf(moment));
    this.#lab.draw();
  }

  async #goBack(): Promise<void> {
    const { step } = this.#progress!;
    const before = await this.#linux.eventStepBefore(step);
    if (before !== undefined) await this.#again(before);
  }

  /** Runs from the snapshot to an earlier step, with the inputs before it. */
  async #again(step: number): Promise<void> {
    const inputs = await this.#linux.inputs();
    await this.#start(
      inputs.filter((input) => input.step < step),
      step,
    );
  }

  draw(): TemplateResult {
    const { machine, hosts } = this.#lab.state;
    return html`<section class="linux">
      <div class="row">
        <label>Hosts <select @change=${(event: Event) => this.#lab.change({ hosts: chosen(event) === '2' ? 2 : 1 })}>
          <option value="1" ?selected=${hosts === 1}>1, its port with a loopback plug</option>
          <option value="2" ?selected=${hosts === 2}>2, with a cable between their adapters</option>
        </select></label>
        <label>Seed <input type="number" min="0" max="4294967295" .value=${String(machine.seed)}
          @change=${(event: Event) => this.#lab.change({ machine: { ...machine, seed: Number(chosen(event)) } })}></label>
        <button @click=${() => void this.#start([], undefined)}>Restart</button>
      </div>
      ${this.#error === undefined ? nothing : html`<p class="warning" role="alert">${this.#error}</p>`}
      ${this.#snapshot?.phase === 'ready' ? this.#machine() : this.#missing()}
    </section>`;
  }

  #missing(): TemplateResult {
    if (this.#hasNoServer)
      return html`<p class="warning">This page starts Linux from a snapshot, which "npx hca lab" serves: it is made on your computer
        out of Debian's packages, and is part of no site.</p>`;
    const state = this.#snapshot;
    if (state === undefined) return html`<p role="status">Loading …</p>`;
    const { phase, command, notices } = state;
    return html`<p>Linux starts here from a snapshot of a booted Debian. It is not made yet: <code>${command}</code> makes it, once. It
        fetches Debian's packages (some 60 MB) and boots, which takes about a minute.</p>
      <p><button class="main" ?disabled=${phase === 'making'} @click=${() => void this.#linux.make()}>Make the snapshot</button>
        <span role="status">${phase === 'making' ? 'being made …' : phase === 'failed' ? 'The command has failed:' : ''}</span></p>
      ${notices.length === 0 ? nothing : html`<pre class="scroll" tabindex="0" role="region" aria-label="What the command says">${notices.join('\n')}</pre>`}`;
  }

  #machine(): TemplateResult {
    const { hosts } = this.#lab.state;
    const isPaused = this.#progress?.phase === 'paused';
    const isBack = this.#goesTo !== undefined;
    const isIdle = this.#progress === undefined || this.#progress.phase === 'starting' || isBack;
    return html`<div class="row">
        ${
          isPaused
            ? html`<button class="main" ?disabled=${isIdle} @click=${() => void this.#linux.resume()}>Continue</button>`
            : html`<button class="main" ?disabled=${isIdle} @click=${() => void this.#linux.pause()}>Pause</button>`
        }
        <button ?disabled=${!isPaused || isBack} @click=${() => void this.#goBack()}>◀ Event before</button>
        <span>On to the next</span>
        ${linuxEvents.map(
          (event) =>
            html`<button ?disabled=${!isPaused || isBack} @click=${() => void this.#linux.resume(event)}>${eventTitles[event]}</button>`,
        )}
        <span role="status">${this.#status()}</span>
      </div>
      <div class="linux-panes ${hosts === 2 ? 'two' : ''}">
        <div>
          <div class="terminals">${this.#places.slice(0, hosts).map(terminalPlace)}</div>
          ${this.#counts()}
        </div>
        <div>${this.#picture(isPaused)}</div>
      </div>
      ${this.#commandList()}`;
  }

  #status(): string {
    const progress = this.#progress;
    if (progress === undefined) return 'starting …';
    const { phase, step, atPs } = progress;
    if (this.#goesTo !== undefined)
      return `running again from the snapshot: step ${countText(step)} of ${countText(this.#goesTo)}`;
    const words = { starting: 'starting …', running: 'running', paused: 'paused' }[phase];
    return `${words} at ${(atPs / psPerSecond).toFixed(9)} s of simulated time`;
  }

  #counts(): TemplateResult {
    const { counts = {}, instructions = [] } = this.#progress ?? {};
    const parts = [
      ...linuxEvents.map((event) => `${countText(counts[event] ?? 0)} × ${eventTitles[event]}`),
      ...instructions.map((count, host) => `host ${host}: ${countText(count)} instructions`),
    ];
    return html`<p class="dim">${parts.join(', ')}</p>`;
  }

  #picture(isPaused: boolean): TemplateResult {
    const moment = this.#moment;
    if (moment === undefined || moment.records.length === 0) return html``;
    const player = this.#player;
    const whole = layoutOfPicture(moment, hasWidthAcross());
    const layout = this.#lab.state.hosts === 1 ? withoutFarSide(whole) : whole;
    const when = isPaused ? `${timeText(-player.atPs)} before the pause` : 'at the last event';
    const records = happeningAt(moment, player.atPs);
    return html`<h2>${isPaused ? 'The last events' : 'The last event'}</h2>
      ${
        isPaused
          ? playerRow({
              ...{ player, playSeconds, instants: instantsOf(moment), stepName: 'event', since: 'pause' },
              ...{
                fromPs: moment.fromPs,
                toPs: 0,
                moved: () => this.#lab.draw(),
                draw: () => this.#lab.draw(),
              },
            })
          : nothing
      }
      ${diagram(moment, layout, player.atPs, when, { block: '', shown: undefined })}
      <p class="key">${colourKey.map(([text, colour]) => html`<span><i class="mark c${colour}"></i>${text}</span>`)}</p>
      ${isPaused ? records.slice(0, detailsMax).map((record) => eventDetails(moment, record, player.atPs)) : nothing}`;
  }

  #commandList(): TemplateResult {
    return html`<h2>Commands of the drivers</h2>
      <pre class="scroll commands" tabindex="0" role="region" aria-label="Commands of the drivers">${
        this.#commands.length === 0 ? 'None yet.' : this.#commands.toReversed().join('')
      }</pre>`;
  }

  drawn(): void {
    const places = this.#places.slice(0, this.#lab.state.hosts).flatMap(({ value }) => value ?? []);
    if (places.length === this.#lab.state.hosts) this.#terminals.show(places);
  }
}

const terminalPlace = (place: Ref<HTMLElement>, host: number): TemplateResult => html`<div>
  <h2>Host ${host}</h2>
  <div class="terminal-scroll" tabindex="0" role="region" aria-label="Console of host ${host}"><div class="terminal-place" ${ref(place)}></div></div>
</div>`;

/** The middle of the last TLP's way, at which it is seen; without any, the last event. */
function latestOf(moment: LinuxMoment): number {
  const tlp = moment.records.findLast(({ kind }) => kind === 'tlp');
  if (tlp === undefined) return instantsOf(moment).at(-1) ?? 0;
  return Math.min(0, Math.round((tlp.fromPs + (tlp.arrivesPs ?? tlp.toPs)) / 2));
}
