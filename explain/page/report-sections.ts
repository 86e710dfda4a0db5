/**
 * The sections of a report: the life of each operation, the work and waits of every block, processors, PCIe, cable,
 * caches, interrupts, the ledgers' checks. They are made from the report's JSON alone.
 */

import type { BlockRow, CheckReport, LinkDirection, NodeReport, Report } from '../../machine/index.ts';
import { blockOrder, type Cell, diagramSvg, layoutOf, type Work } from '../diagram/index.ts';
import { bytesText, countText, shareText, timeText } from '../text/format.ts';
import { directionText, faultLines } from '../text/render.ts';
import { stagesShown } from '../text/stages-shown.ts';
import { cacheNameOf } from '../text/titles.ts';
import { wordsOf } from '../text/words.ts';
import { bar, type Html, html, narrowTable, pieceOf, type Segment, table } from './html.ts';

/** A host: a simulated one has processors; for a guest, only its device is known. */
interface HostShown {
  readonly cpu?: NodeReport['cpu'];
  readonly memoryBus?: NodeReport['memoryBus'];
  readonly nic?: NodeReport['nic'];
  readonly hca: Pick<NodeReport['hca'], 'blocks' | 'caches'>;
  readonly pcie: NodeReport['pcie'];
  readonly interrupts: readonly InterruptShown[];
}

/** Steps that only one kind of host has are left out for the other. */
type InterruptShown = Pick<NodeReport['interrupts'][number], 'vector'> &
  Partial<Omit<NodeReport['interrupts'][number], 'vector'>>;

/** Common parts of a report of the simulated machine and a report of served devices. */
export interface ReportShown
  extends Pick<Report, 'elapsedPs' | 'operations' | 'wire' | 'switches' | 'configHash'> {
  readonly nodes: readonly HostShown[];
  readonly checks: { readonly balanced: boolean };
  readonly faults?: Report['faults'];
}

const COLOUR_COUNT = 10;

/** @param isOneOfMany whether the page has many reports and thus does not draw the machine */
export function reportSections(report: ReportShown, isOneOfMany = false): Html {
  return html`${stagesOf(report)}
${diagramOf(report, isOneOfMany)}
${processorsOf(report)}
${linksOf(report)}
${cachesOf(report)}
${interruptsOf(report)}
${checksOf(report)}`;
}

function stagesOf({ operations }: ReportShown): Html {
  const stages = stagesShown(Object.values(operations));
  const done = Object.entries(operations).filter(([, { count }]) => count > 0);
  if (done.length === 0) return html``;
  const meanPs = ([, { count, milestonesPs }]: (typeof done)[number], stage: string): number =>
    Math.round((milestonesPs[stage] ?? 0) / count);
  const totals = done.map((entry) => stages.reduce((sum, stage) => sum + meanPs(entry, stage), 0));
  const longest = Math.max(...totals);
  const segmentsOf = (entry: (typeof done)[number]): Segment[] =>
    stages.map((name, at) => {
      const value = meanPs(entry, name);
      return { name: wordsOf(name), value, text: timeText(value), colour: `c${at % COLOUR_COUNT}` };
    });
  const counted = stages.filter((stage) => done.some((entry) => meanPs(entry, stage) > 0));
  return html`<h2>The life of an operation</h2>
<p>Where its time went, from the post until the program took the completion: the mean of what was waited for, one after the other.</p>
<p>${counted.map((stage) => html`<span class="key"><i class="c${stages.indexOf(stage) % COLOUR_COUNT}"></i>${wordsOf(stage)}</span>`)}</p>
<div class="life">${done.map((entry) => html`<span>${entry[0]}</span>${bar(segmentsOf(entry), longest)}`)}</div>
${narrowTable(
  'Mean of each stage, and how long operations took',
  ['operation', 'count', 'p50', 'p99', ...counted.map(wordsOf)],
  done.map((entry) => {
    const [name, { count, latencyPs }] = entry;
    const quantile = (which: 'p50' | 'p99'): string =>
      latencyPs === null ? '–' : timeText(latencyPs[which]);
    return [
      name,
      countText(count),
      quantile('p50'),
      quantile('p99'),
      ...counted.map((stage) => timeText(meanPs(entry, stage))),
    ];
  }),
)}`;
}

const stalledOf = ({ stalledCycles }: BlockRow): number =>
  Object.values(stalledCycles).reduce((sum, cycles) => sum + cycles, 0);

/** This block works during driver set-up for longer than all data takes, so bars are not scaled by it. */
const OFF_SCALE = 'commandProcessor';

function diagramOf(report: ReportShown, isOneOfMany: boolean): Html {
  const { nodes, wire } = report;
  const works = nodes.flatMap(({ hca, nic }) =>
    Object.entries(nic?.blocks ?? hca.blocks)
      .filter(([name]) => name !== OFF_SCALE)
      .map(([, block]) => block.busyCycles + stalledOf(block)),
  );
  const longest = Math.max(1, ...works);
  const cables = wire.map(
    ({
      busyPs,
      packets,
      bytes,
      creditWaitPs,
      serializerWaitPs,
      pauseWaitPs,
      ...ends
    }) => html`<div class="unit"><h3>cable ${directionText(ends, report)}</h3>
<p>${countText(packets)} packets, ${bytesText(bytes)}; busy ${timeText(busyPs)}; waited ${timeText(creditWaitPs)} for credits, ${timeText(serializerWaitPs)} for the link${pauseWaitPs === undefined ? '' : `, ${timeText(pauseWaitPs)} for the end of a pause`}</p></div>`,
  );
  return html`<h2>What each block did</h2>
<p><span class="key"><i class="busy"></i>busy</span><span class="key"><i class="stalled"></i>stalled</span> Bars are as long as the cycles at
work and in waiting; the longest of all fills its card, the ${wordsOf(OFF_SCALE)}'s aside, which works while drivers set up. The rest of the time a block was idle.</p>
${isOneOfMany ? html`` : drawingOf(nodes, longest)}
<div class="diagram">${nodes.map((node, at) => deviceOf(node, at, longest))}<div>${cables}</div></div>`;
}

/** One drawing of the machine, each block with its work, for a pair of HCAs. */
function drawingOf(nodes: readonly HostShown[], longest: number): Html {
  if (nodes.length !== 2 || nodes.some(({ nic }) => nic !== undefined)) return html``;
  const parts = nodes.flatMap(({ hca, cpu }, node) => [
    { process: `host${node}`, blocks: coresAtWork(cpu), caches: [] },
    {
      process: `hca${node}`,
      blocks: Object.keys(hca.blocks),
      caches: Object.keys(hca.caches).map(cacheNameOf),
    },
  ]);
  const workOf = ({ process, name }: Cell): Work | undefined => {
    const block = process.startsWith('hca')
      ? nodes[Number(process.slice('hca'.length))]!.hca.blocks[name]
      : undefined;
    if (block === undefined || name === OFF_SCALE) return undefined;
    const stalled = stalledOf(block);
    const text = `${countText(block.busyCycles)} cycles busy, ${countText(stalled)} stalled`;
    return { busy: block.busyCycles / longest, stalled: stalled / longest, text };
  };
  const label =
    'Hosts, devices and links, with the arrows of a WRITE in their order; what each block did is listed below';
  return pieceOf(
    [true, false]
      .map((isAcross) =>
        diagramSvg({
          layout: layoutOf(parts, isAcross),
          label,
          name: `data-path ${isAcross ? 'across' : 'down'}`,
          workOf,
        }),
      )
      .join(''),
  );
}

/** Up to three busy cores; core 0 if no core was busy. */
function coresAtWork(cpu: HostShown['cpu']): string[] {
  const cores = cpu?.cores ?? [];
  const names = cores.flatMap(({ cycles }, core) => (cycles.idle === cycles.total ? [] : [`core ${core}`]));
  return names.length === 0 ? ['core 0'] : names.slice(0, 3);
}

/** Returns the blocks in the order of a WRITE, then the control blocks of the device. */
const blocksInOrder = (blocks: Readonly<Record<string, BlockRow>>): (readonly [string, BlockRow])[] => {
  const placeOf = (name: string): number => (blockOrder.indexOf(name) + 100) % 100;
  return Object.entries(blocks).toSorted(([left], [right]) => placeOf(left) - placeOf(right));
};

function deviceOf({ hca, nic }: HostShown, node: number, longest: number): Html {
  const blocks = blocksInOrder(nic?.blocks ?? hca.blocks);
  return html`<div class="unit"><h3>${nic === undefined ? 'HCA' : 'NIC'} ${node}</h3>${blocks.map(([name, block]) => blockOf(name, block, longest))}</div>`;
}

function blockOf(name: string, block: BlockRow, longest: number): Html {
  const stalled = stalledOf(block);
  const share = (cycles: number): string =>
    `${countText(cycles)} cycles, ${shareText(cycles, block.elapsedCycles)} of the run`;
  const reasons = Object.entries(block.stalledCycles)
    .filter(([, cycles]) => cycles > 0)
    .toSorted(([, left], [, right]) => right - left)
    .map(([reason, cycles]) => `${wordsOf(reason)} ${countText(cycles)}`);
  const segments = [
    { name: 'busy', value: block.busyCycles, text: share(block.busyCycles), colour: 'busy' },
    { name: 'stalled', value: stalled, text: share(stalled), colour: 'stalled' },
  ];
  return html`<div class="block">${wordsOf(name)}: ${countText(block.busyCycles)} busy${
    stalled === 0
      ? html``
      : html`, ${countText(stalled)} stalled <span class="why">(${reasons.join(', ')})</span>`
  }${bar(segments, longest)}</div>`;
}

function processorsOf({ nodes }: ReportShown): Html {
  const cores = nodes.flatMap(({ cpu }, node) =>
    (cpu?.cores ?? []).flatMap(({ cycles, contextSwitches }, core) =>
      cycles.idle === cycles.total ? [] : [{ name: `host ${node} core ${core}`, cycles, contextSwitches }],
    ),
  );
  const isCause = (name: string): boolean => name !== 'total' && name !== 'ahead';
  const causes = Object.keys(cores[0]?.cycles ?? {}).filter(
    isCause,
  ) as (keyof (typeof cores)[number]['cycles'])[];
  const counted = causes.filter((cause) => cores.some(({ cycles }) => cycles[cause] > 0));
  if (nodes.every(({ cpu }) => cpu === undefined)) return html``;
  return html`<h2>Processors</h2>
${narrowTable(
  'Cycles by cause',
  ['core', ...counted.map(wordsOf), 'total', 'context switches'],
  cores.map(({ name, cycles, contextSwitches }) => [
    name,
    ...counted.map((cause) => countText(cycles[cause])),
    countText(cycles.total),
    countText(contextSwitches),
  ]),
)}
${table(
  'System calls and bytes over the memory bus',
  ['host', 'calls on the data path', 'calls to set up', 'bytes over the memory bus'],
  nodes.map(({ cpu, memoryBus }, node) => [
    `host ${node}`,
    countText(cpu?.systemCalls.dataPath ?? 0),
    countText(cpu?.systemCalls.control ?? 0),
    bytesText(memoryBus?.total ?? 0),
  ]),
)}`;
}

function linksOf({ nodes, elapsedPs }: ReportShown): Html {
  const directions = nodes.flatMap(({ pcie }, node): (readonly [string, LinkDirection])[] => [
    [`host ${node} → device`, pcie.toDevice],
    [`device → host ${node}`, pcie.toHost],
  ]);
  const classes = [...new Set(directions.flatMap(([, { classes: each }]) => Object.keys(each)))];
  return html`<h2>PCIe</h2>
${narrowTable(
  'TLPs by what they were for, and how long the lanes were taken',
  ['direction', ...classes.map(wordsOf), 'TLPs', 'bytes on the link', 'lanes taken'],
  directions.map(([name, { classes: each, total, linkBytes, busyPs }]) => [
    name,
    ...classes.map((kind) => countText(each[kind]?.tlps ?? 0)),
    countText(total.tlps),
    bytesText(linkBytes),
    `${timeText(busyPs)} (${shareText(busyPs, elapsedPs)})`,
  ]),
)}`;
}

function cachesOf({ nodes }: ReportShown): Html {
  const rows = nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.caches).flatMap(([name, { hits, misses, evictions, users }]) => {
      if (hits + misses === 0) return [];
      const all = [
        `HCA ${node} ${cacheNameOf(name)}`,
        countText(hits),
        countText(misses),
        shareText(hits, hits + misses),
        countText(evictions),
      ];
      const byUser = Object.entries(users).map(([user, use]) => [
        `HCA ${node} ${cacheNameOf(name)}, ${wordsOf(user)}`,
        countText(use.hits),
        countText(use.misses),
        shareText(use.hits, use.hits + use.misses),
        '',
      ]);
      return [all, ...byUser];
    }),
  );
  return html`<h2>Caches</h2>
${table('Look-ups that found what they needed, in all and by the block that asked', ['cache', 'hits', 'misses', 'hit rate', 'evictions'], rows)}`;
}

/** Steps from the device's reason to the handler; steps that a report lacks are left out. */
const interruptSteps = [
  'requested',
  'moderated',
  'masked',
  'coalesced',
  'sent',
  'delivered',
  'handled',
] as const;

function interruptsOf({ nodes }: ReportShown): Html {
  const rows = nodes.flatMap(({ interrupts }, node) =>
    interrupts
      .filter(({ requested = 0, delivered = 0 }) => requested + delivered > 0)
      .map((row) => ({ node, row })),
  );
  const steps = interruptSteps.filter((step) => rows.some(({ row }) => row[step] !== undefined));
  return html`<h2>Interrupts</h2>
${
  rows.length === 0
    ? html`<p>None.</p>`
    : table(
        'From the reasons of the device to the handler',
        ['vector', ...steps],
        rows.map(({ node, row }) => [
          `host ${node} vector ${row.vector}`,
          ...steps.map((step) => countText(row[step] ?? 0)),
        ]),
      )
}`;
}

function checksOf({ checks, faults }: ReportShown): Html {
  const { balanced, ...others } = checks;
  const each = others as Readonly<Record<string, CheckReport>>;
  const failures = Object.entries(each).flatMap(([name, { failures: found }]) =>
    found.map((failure) => html`<li class="bad">${name}: ${failure}</li>`),
  );
  const names = Object.keys(each).join(', ');
  return html`<h2>Checks</h2>
${faultLines(faults).map((line) => html`<p>${line}</p>`)}
${balanced ? html`<p class="good">The ledgers balance: ${names}.</p>` : html`<p class="bad">The ledgers do not balance.</p><ul>${failures}</ul>`}`;
}
