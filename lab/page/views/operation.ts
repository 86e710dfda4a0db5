/**
 * "One operation, as it happens": a request from its post to its completion, instant by instant: what each block does, every TLP and
 * packet where it is, its bytes decoded.
 */
import { html, nothing, type TemplateResult } from 'lit-html';
import { bytesText, timeText } from '../../../system/text/format.ts';
import type { OperationPicture, PictureRecord, ScenarioName } from '../../protocol.ts';
import { colourKey, colourOf, diagram } from '../diagram.ts';
import { type DiagramLayout, layoutOf } from '../diagram-layout.ts';
import { Latest } from '../latest.ts';
import { happeningAt, instantsOf, levelAt, recordsOfCell, underWay } from '../moment.ts';
import { Player } from '../player.ts';
import { scenarioTitles } from '../scenario-titles.ts';
import { type Axis, timeAxis } from '../time-axis.ts';
import type { Lab, View } from '../view.ts';

const sizes = [8, 64, 256, 1024, 4096, 16_384, 65_536] as const;
/** Below this many pixels the diagram goes down the page. */
const acrossPx = 900;
/** The whole time of an operation while it plays. */
const playSeconds = 20;
/** Of what happens at one instant, so much is shown with all its bytes. */
const detailsMax = 6;

export class OperationView implements View {
  readonly #lab: Lab;
  readonly #latest = new Latest();
  readonly #player: Player;
  #picture: OperationPicture | undefined;
  #axis: Axis | undefined;
  #error: string | undefined;
  #isComputing = false;
  #asked = '';
  #block: { readonly process: string; readonly name: string } | undefined;
  #instants: readonly number[] = [];
  #shown: PictureRecord | undefined;
  #layout:
    | { readonly layout: DiagramLayout; readonly picture: OperationPicture; readonly isAcross: boolean }
    | undefined;

  constructor(lab: Lab) {
    this.#lab = lab;
    this.#player = new Player(() => lab.draw());
    addEventListener('resize', () => lab.draw());
  }

  changed(): void {
    const { machine, message, scenario, isWarm, atPs } = this.#lab.state;
    const { sizeBytes, mtuBytes } = message;
    const question = { machine, scenario, sizeBytes, mtuBytes, isWarm };
    const asked = JSON.stringify(question);
    if (asked !== this.#asked) {
      this.#asked = asked;
      void this.#compute(question, atPs);
    } else if (atPs !== this.#player.atPs) this.#player.goTo(atPs);
  }

  async #compute(question: Parameters<Lab['model']['ask']['operation']>[0], atPs: number): Promise<void> {
    const isWanted = this.#latest.begin();
    this.#isComputing = true;
    this.#player.pause();
    try {
      const picture = await this.#lab.model.ask.operation(question);
      if (!isWanted()) return;
      this.#picture = picture;
      this.#axis = axisOf(picture);
      this.#error = undefined;
      this.#shown = undefined;
      this.#player.spans(picture.fromPs, picture.toPs);
      this.#chooseBlock(undefined);
      this.#player.goTo(atPs);
    } catch (error) {
      if (!isWanted()) return;
      this.#picture = undefined;
      this.#error = error instanceof Error ? error.message : String(error);
    } finally {
      if (isWanted()) {
        this.#isComputing = false;
        this.#lab.draw();
      }
    }
  }

  draw(): TemplateResult {
    const picture = this.#picture;
    return html`<section class="operation" aria-busy=${this.#isComputing}>
      ${this.#fields()}
      ${this.#error === undefined ? nothing : html`<p class="warning" role="alert">${this.#error}</p>`}
      ${picture === undefined ? html`<p role="status">${this.#error === undefined ? 'Simulating …' : nothing}</p>` : this.#shownPicture(picture)}
    </section>`;
  }

  #fields(): TemplateResult {
    const { scenario, message, isWarm } = this.#lab.state;
    const change = (event: Event): string => (event.target as HTMLSelectElement).value;
    const sizesShown = sizes.includes(message.sizeBytes as never)
      ? sizes
      : [...sizes, message.sizeBytes].sort((left, right) => left - right);
    return html`<div class="row">
      <label>Operation <select @change=${(event: Event) => this.#lab.change({ scenario: change(event) as ScenarioName, atPs: 0 })}>
        ${Object.entries(scenarioTitles).map(([name, title]) => html`<option value=${name} ?selected=${name === scenario}>${title}</option>`)}
      </select></label>
      <label>Size <select @change=${(event: Event) => this.#lab.change({ message: { ...message, sizeBytes: Number(change(event)) }, atPs: 0 })}>
        ${sizesShown.map((size) => html`<option value=${size} ?selected=${size === message.sizeBytes}>${bytesText(size)}</option>`)}
      </select></label>
      <label>Caches <select @change=${(event: Event) => this.#lab.change({ isWarm: change(event) === 'warm', atPs: 0 })}>
        <option value="cold" ?selected=${!isWarm}>cold: the first of its kind</option>
        <option value="warm" ?selected=${isWarm}>warm: the fourth</option>
      </select></label>
      <span role="status">${this.#isComputing ? 'simulating …' : ''}</span>
    </div>`;
  }

  #shownPicture(picture: OperationPicture): TemplateResult {
    const { atPs } = this.#player;
    return html`
      ${this.#verdict(picture)}
      ${this.#controls(picture)}
      ${diagram(
        picture,
        this.#layoutOf(picture),
        atPs,
        {
          block: this.#block === undefined ? '' : `${this.#block.process} ${this.#block.name}`,
          shown: this.#shown,
        },
        {
          choose: (process, name) => {
            const isSame = this.#block?.process === process && this.#block.name === name;
            this.#chooseBlock(isSame ? undefined : { process, name });
            this.#lab.draw();
          },
          show: (record) => {
            this.#shown = record;
            this.#player.pause();
            this.#lab.draw();
          },
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
    const { operation, payloadBytes, latencyPs, status, hits, misses, cqePs, lastBytesPs, isBalanced } =
      picture;
    return html`<p><strong>${operation}</strong> of ${bytesText(payloadBytes)}: <strong>${timeText(latencyPs)}</strong> from the post to the completion, status ${status}.
      The devices looked ${hits + misses} times into their caches and missed ${misses} times.${isBalanced ? nothing : ' The ledgers do not balance.'}</p>
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

  #controls(picture: OperationPicture): TemplateResult {
    const player = this.#player;
    const step = (direction: 1 | -1) => () => {
      this.#shown = undefined;
      player.step(this.#instants, direction);
      this.#keep();
    };
    const toggle = (): void => {
      if (player.isPlaying) {
        player.pause();
        this.#keep();
        this.#lab.draw();
      } else player.play(playSeconds);
    };
    const of = this.#block === undefined ? 'event' : `event of ${this.#block.process} ${this.#block.name}`;
    const { fromPs, toPs } = picture;
    return html`<div class="row player">
      <button @click=${step(-1)} aria-label="Back to the previous ${of}">◀ Back</button>
      <button class="main" @click=${toggle}>${player.isPlaying ? 'Pause' : 'Play'}</button>
      <button @click=${step(1)} aria-label="Forward to the next ${of}">Forward ▶</button>
      <label>Steps of <select @change=${(event: Event) => {
        const [process, ...name] = (event.target as HTMLSelectElement).value.split(' ');
        this.#chooseBlock(process === '' ? undefined : { process: process!, name: name.join(' ') });
        this.#lab.draw();
      }}>
        <option value="" ?selected=${this.#block === undefined}>everything</option>
        ${this.#layoutOf(picture).cells.map(
          ({ process, name }) =>
            html`<option value="${process} ${name}" ?selected=${this.#block?.process === process && this.#block.name === name}>${process} ${name}</option>`,
        )}
      </select></label>
      <label class="instant">Instant <input type="range" min=${fromPs} max=${toPs} step="1000" .value=${String(player.atPs)}
        aria-valuetext="${timeText(player.atPs)} after the post" @input=${(event: Event) => this.#goTo(Number((event.target as HTMLInputElement).value))}>
      <output>${(player.atPs / 1000).toFixed(3)} ns</output></label>
    </div>`;
  }

  /** What begins or takes effect now, with its bytes; or what was chosen. */
  #happening(picture: OperationPicture, atPs: number): TemplateResult {
    const records = this.#shown === undefined ? happeningAt(picture, atPs) : [this.#shown];
    const moving = underWay(picture, atPs);
    return html`<h2>${this.#shown === undefined ? 'At this instant' : 'Chosen'}</h2>
      ${records.length === 0 ? html`<p class="dim">Nothing begins or takes effect at this very instant.</p>` : nothing}
      ${records.slice(0, detailsMax).map((record) => details(picture, record, atPs))}
      ${records.length > detailsMax ? html`<p class="dim">… and ${records.length - detailsMax} more.</p>` : nothing}
      <h2>On the way now</h2>
      ${
        moving.length === 0
          ? html`<p class="dim">Nothing.</p>`
          : html`<ul class="plain">${moving.map(({ record }) => {
              const { process } = picture.tracks[record.track]!;
              return html`<li><button class="link" @click=${() => {
                this.#shown = record;
                this.#player.pause();
                this.#lab.draw();
              }}><i class="mark c${colourOf(record)}"></i>${record.label} to ${process}</button></li>`;
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
          <span class="figure">${(milestone.atPs / 1000).toFixed(3)} ns</span> ${milestone.text}</button></li>`,
      )}</ol>
      ${stage === undefined ? nothing : html`<p><b>${stage.name}</b>, ${timeText(stage.toPs - stage.fromPs)}: ${stage.text}</p>`}`;
  }

  #goTo(atPs: number): void {
    this.#shown = undefined;
    this.#player.goTo(atPs);
    this.#keep();
  }

  /** The instant belongs into the address. */
  #keep(): void {
    if (this.#lab.state.atPs !== this.#player.atPs) this.#lab.change({ atPs: this.#player.atPs });
  }

  #chooseBlock(block: { readonly process: string; readonly name: string } | undefined): void {
    this.#block = block;
    const picture = this.#picture;
    if (picture === undefined) return;
    this.#instants =
      block === undefined
        ? instantsOf(picture)
        : instantsOf(picture, recordsOfCell(picture, block.process, block.name));
  }

  #layoutOf(picture: OperationPicture): DiagramLayout {
    const isAcross = document.documentElement.clientWidth >= acrossPx;
    const known = this.#layout;
    if (known !== undefined && known.picture === picture && known.isAcross === isAcross) return known.layout;
    const used = picture.tracks.filter(
      ({ group }, track) => group !== 'cores' || picture.records.some((record) => record.track === track),
    );
    const layout = layoutOf(used, isAcross);
    this.#layout = { layout, picture, isAcross };
    return layout;
  }
}

/** A record with its numbers and the bytes that it carries. */
function details(picture: OperationPicture, record: PictureRecord, atPs: number): TemplateResult {
  const { process, group, name } = picture.tracks[record.track]!;
  const { label, fromPs, toPs, arrivesPs, inMemoryPs, values, decoded } = record;
  const effect =
    inMemoryPs === atPs
      ? ': in memory now'
      : arrivesPs === atPs
        ? ': arrives now'
        : fromPs === atPs
          ? ''
          : '';
  const lasts = toPs > fromPs ? `, ${timeText(toPs - fromPs)}` : '';
  const times = [
    `from ${(fromPs / 1000).toFixed(3)} ns${lasts}`,
    ...(arrivesPs === undefined ? [] : [`arrives at ${(arrivesPs / 1000).toFixed(3)} ns`]),
    ...(inMemoryPs === undefined ? [] : [`in memory at ${(inMemoryPs / 1000).toFixed(3)} ns`]),
  ];
  return html`<div class="detail"><b><i class="mark c${colourOf(record)}"></i>${label}${effect}</b>
    <span class="dim">${process}, ${group === 'pcie' || group === 'cable' ? `${group} ${name}` : name}; ${times.join(', ')}</span>
    ${values.length === 0 ? nothing : html`<p class="dim">${values.map(([key, value]) => `${key} ${value}`).join(', ')}</p>`}
    ${decoded.map((at) => {
      const event = picture.decoded[at]!;
      return html`<p>${event.summary}</p>${event.sections.map(
        ({ title, fields }) =>
          html`<dl class="layout"><dt>${title}</dt><dd>${fields.map((field) => html`<code>${field}</code> `)}</dd></dl>`,
      )}`;
    })}
  </div>`;
}

/** How full queues are, and up to where credits go. */
function levels(picture: OperationPicture, atPs: number): TemplateResult {
  const rows = picture.levels.flatMap((level) => {
    const value = levelAt(level, atPs);
    const most = Math.max(...level.steps.map(([, each]) => each));
    return value === undefined
      ? []
      : [
          html`<tr><th scope="row">${level.process}, ${level.name}</th><td>${value}</td><td>${most}</td></tr>`,
        ];
  });
  return html`<h2>Queues and credits</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Queues and credits"><table>
      <thead><tr><th scope="col">of those that change</th><th scope="col">now</th><th scope="col">most</th></tr></thead>
      <tbody>${rows}</tbody></table></div>`;
}

/** Rows of the axis: the operation's stages, cores, both directions of each link, blocks, memories. */
function axisOf(picture: OperationPicture): Axis {
  const { stages, records, tracks, fromPs, toPs } = picture;
  const of = (
    title: string,
    process: string,
    wanted: (record: PictureRecord, group: string) => boolean,
    colour: (record: PictureRecord) => number,
    span: (record: PictureRecord) => readonly [number, number] = (record) => [record.fromPs, record.toPs],
  ) => ({
    title,
    items: records
      .filter(
        (record) => tracks[record.track]!.process === process && wanted(record, tracks[record.track]!.group),
      )
      .map((record) => {
        const [from, to] = span(record);
        const end = Math.min(to, toPs);
        return {
          fromPs: Math.max(from, fromPs),
          toPs: Math.max(from, end),
          colour: colour(record),
          title: `${record.label}, ${timeText(from)}`,
        };
      }),
  });
  const ofGroup = (title: string, process: string, group: string) =>
    of(
      title,
      process,
      ({ kind }, own) => own === group && kind !== 'updateFc' && kind !== 'flowControl',
      colourOf,
    );
  const work = (title: string, process: string, group: string, colour: number) =>
    of(
      title,
      process,
      (_, own) => own === group,
      ({ kind }) => (kind === 'blockStalled' ? 3 : colour),
    );
  const memory = (title: string, process: string) =>
    of(
      title,
      process,
      ({ inMemoryPs }) => inMemoryPs !== undefined,
      colourOf,
      ({ inMemoryPs }) => [inMemoryPs!, inMemoryPs!],
    );
  return {
    fromPs,
    toPs,
    rows: [
      {
        title: 'stages',
        items: stages.map((stage, index) => ({
          fromPs: stage.fromPs,
          toPs: stage.toPs,
          colour: index % 10,
          title: `${stage.name}, ${timeText(stage.toPs - stage.fromPs)}`,
        })),
      },
      work('host 0 cores', 'host0', 'cores', 8),
      memory('host 0 memory', 'host0'),
      ofGroup('PCIe to device 0', 'hca0', 'pcie'),
      ofGroup('PCIe to host 0', 'host0', 'pcie'),
      work('device 0', 'hca0', 'blocks', 9),
      ofGroup('cable to 1', 'hca1', 'cable'),
      ofGroup('cable to 0', 'hca0', 'cable'),
      work('device 1', 'hca1', 'blocks', 9),
      ofGroup('PCIe to host 1', 'host1', 'pcie'),
      ofGroup('PCIe to device 1', 'hca1', 'pcie'),
      memory('host 1 memory', 'host1'),
      work('host 1 cores', 'host1', 'cores', 8),
    ],
  };
}
