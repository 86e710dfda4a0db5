/**
 * The report as tables for a terminal, made from the JSON alone: the time of each operation, the work of the cores,
 * traffic on PCIe and the cable, caches, interrupts, system calls, and whether the ledgers balance.
 */
import type { MemoryStatistics } from '../../host/index.ts';
import { type RefusalKind, refusalKindOf } from '../../hw/hca/index.ts';
import {
  type CheckReport,
  type FaultReport,
  type LinkDirection,
  type NodeReport,
  type Report,
  raceText,
  type WireReport,
} from '../../machine/index.ts';
import { portText } from '../../machine/topology/index.ts';
import { bytesText, countText, shareText, timeText } from './format.ts';
import { iommuTable, onDemandTable } from './memory-tables.ts';
import { stagesShown } from './stages-shown.ts';
import { tableOf } from './table.ts';

/** All tables, one below the other. */
export function renderReport(report: Report): string {
  return [
    operationsTable(report),
    cpuTable(report.nodes),
    memoryTable(report.nodes),
    memoryBusTable(report.nodes),
    ...iommuTable(report.nodes),
    ...onDemandTable(report.nodes),
    pcieTable(report.nodes),
    ...(report.config.machine.adapter === 'nic'
      ? [nicTable(report.nodes.map(({ nic }, host) => [host, nic]))]
      : [cacheTable(report.nodes)]),
    interruptTable(report.nodes),
    ...transportTable(report.nodes),
    ...congestionTable(report.nodes),
    ...inlineReceiveTable(report.nodes),
    wireTable(report, report.config.machine.adapter),
    systemCallLine(report.nodes),
    ...raceLines(report.nodes),
    ...accessLines(report.nodes),
    ...faultLines(report.faults),
    checksLine(report.checks),
  ].join('\n');
}

function operationsTable({ operations }: Report): string {
  const stages = stagesShown(Object.values(operations));
  const rows = Object.entries(operations).map(([name, { count, latencyPs, milestonesPs }]) => [
    name,
    countText(count),
    latencyPs === null ? '-' : timeText(latencyPs.p50),
    latencyPs === null ? '-' : timeText(latencyPs.p99),
    ...stages.map((stage) => (count === 0 ? '-' : timeText(Math.round((milestonesPs[stage] ?? 0) / count)))),
  ]);
  return tableOf(
    'Where the time of each operation went (mean of what was waited for, one after the other)',
    ['operation', 'count', 'p50', 'p99', ...stages],
    rows,
  );
}

/** Busy cores, by cause. */
function cpuTable(nodes: readonly NodeReport[]): string {
  const causes = Object.keys(nodes[0]!.cpu.cores[0]!.cycles).filter(
    (name) => name !== 'total' && name !== 'ahead' && nodes.some((node) => hasCause(node, name)),
  ) as (keyof NodeReport['cpu']['cores'][number]['cycles'])[];
  const rows = nodes.flatMap(({ cpu }, node) =>
    cpu.cores.flatMap(({ cycles }, core) =>
      cycles.idle === cycles.total
        ? []
        : [
            [
              `host ${node} core ${core}`,
              ...causes.map((cause) => countText(cycles[cause])),
              countText(cycles.total),
            ],
          ],
    ),
  );
  return tableOf('CPU cycles by cause', ['core', ...causes, 'total'], rows);
}

const hasCause = ({ cpu }: NodeReport, cause: string): boolean =>
  cpu.cores.some(({ cycles }) => (cycles as Readonly<Record<string, number>>)[cause] !== 0);

/** Findings of the buffer ownership watch, by host; empty without a watch. */
export function raceLines(nodes: readonly Pick<NodeReport, 'races' | 'lostRaces'>[]): string[] {
  return nodes.flatMap(({ races, lostRaces }, node) => {
    if (races === undefined) return [];
    if (races.length === 0) return [`Races on host ${node}: none`];
    const more = lostRaces === undefined ? [] : [`Races on host ${node}: ${countText(lostRaces)} more`];
    return [...races.map((race) => `Race on host ${node}: ${raceText(race)}`), ...more];
  });
}

/** Findings of the watch of the device's accesses, by host; empty without a watch. */
function accessLines(nodes: readonly Pick<NodeReport, 'unownedAccesses'>[]): string[] {
  return nodes.flatMap(({ unownedAccesses: found }, node) => {
    if (found === undefined) return [];
    const [first] = found.first;
    if (first === undefined) return [`Accesses of device ${node} to memory that is not its: none`];
    const { access, lengthBytes, address, frame, atPs } = first;
    const example = `${access} of ${lengthBytes} bytes at 0x${address.toString(16)}, a frame that is ${frame}, at ${atPs} ps`;
    return [`Accesses of device ${node} to memory that is not its: ${found.count}, the first a ${example}`];
  });
}

/** Every requested fault and its outcome. */
export function faultLines(faults: readonly FaultReport[] = []): string[] {
  return faults.map(({ fault, fired }) =>
    fired === 0
      ? `Fault ${fault}: NEVER happened, so that nothing above shows it`
      : `Fault ${fault}: happened ${countText(fired)} time${fired === 1 ? '' : 's'}`,
  );
}

/** Returns the same lines for several named runs with the same faults. */
export function faultLinesOf(
  runs: readonly { readonly name: string; readonly faults?: readonly FaultReport[] | undefined }[],
): string[] {
  if (runs.length === 1) return faultLines(runs[0]!.faults);
  return (runs[0]?.faults ?? []).map(({ fault }, index) => {
    const counts = runs.map(({ faults }) => faults?.[index]?.fired ?? 0);
    const never = runs.filter((_, run) => counts[run] === 0).map(({ name }) => name);
    if (never.length === runs.length) return `Fault ${fault}: NEVER happened, so that nothing above shows it`;
    const happened = `Fault ${fault}: happened ${counts.map(countText).join(', ')} times`;
    return never.length === 0 ? happened : `${happened}; NEVER in ${never.join(', ')}`;
  });
}

/** Events of memory management: the kinds that occurred on any host. */
function memoryTable(nodes: readonly NodeReport[]): string {
  const kinds = [
    ...new Set(nodes.flatMap(({ memory }) => Object.keys(memory))),
  ] as (keyof MemoryStatistics)[];
  const rows = kinds.map((kind) => [kind, ...nodes.map(({ memory }) => countText(memory[kind] ?? 0))]);
  return tableOf('Memory management', ['', ...nodes.map((_, node) => `host ${node}`)], rows);
}

/** Bytes over each host's memory bus, by actor; actors without bytes are left out. */
function memoryBusTable(nodes: readonly NodeReport[]): string {
  const movers = Object.keys(nodes[0]!.memoryBus) as (keyof NodeReport['memoryBus'])[];
  const rows = movers
    .filter((mover) => nodes.some(({ memoryBus }) => memoryBus[mover] > 0))
    .map((mover) => [mover, ...nodes.map(({ memoryBus }) => bytesText(memoryBus[mover]))]);
  return tableOf('Bytes over the memory bus', ['', ...nodes.map((_, node) => `host ${node}`)], rows);
}

/** Counters of the NIC, of the kernel above it and of programs that drive it. */
/** @param nics with the numbers of their hosts */
export function nicTable(nics: readonly (readonly [host: number, nic: NodeReport['nic']])[]): string {
  const parts = ['kernel', 'programmed', 'device', 'transmitted', 'received'] as const;
  const rows = parts.flatMap((part) => {
    const names = new Set(nics.flatMap(([, nic]) => Object.keys(nic?.[part] ?? {})));
    return [...names].map((name) => [
      `${part} ${name}`,
      ...nics.map(([, nic]) => countText(nic?.[part][name] ?? 0)),
    ]);
  });
  return tableOf('The NIC and its software', ['', ...nics.map(([host]) => `host ${host}`)], rows);
}

export function pcieTable(nodes: readonly Pick<NodeReport, 'pcie'>[]): string {
  const directions = nodes.flatMap(({ pcie }, node) => [
    [`host ${node} → device`, pcie.toDevice] as const,
    [`device → host ${node}`, pcie.toHost] as const,
  ]);
  const classes = [...new Set(directions.flatMap(([, direction]) => Object.keys(direction.classes)))];
  const cell = (direction: LinkDirection, name: string): string => {
    const count = direction.classes[name];
    return count === undefined ? '' : `${countText(count.tlps)} / ${bytesText(count.bytes)}`;
  };
  const rows = [
    ...classes.map((name) => [name, ...directions.map(([, direction]) => cell(direction, name))]),
    [
      'all TLPs',
      ...directions.map(([, { total }]) => `${countText(total.tlps)} / ${bytesText(total.bytes)}`),
    ],
  ];
  return tableOf(
    'PCIe: TLPs / bytes on the link, by class',
    ['class', ...directions.map(([name]) => name)],
    rows,
  );
}

export function cacheTable(nodes: readonly { readonly hca: Pick<NodeReport['hca'], 'caches'> }[]): string {
  const rows = nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.caches)
      .filter(([, { hits, misses }]) => hits + misses > 0)
      .flatMap(([name, { evictions, users }]) =>
        Object.entries(users).map(([user, { hits, misses }], place) => [
          `hca ${node} ${name}, ${user}`,
          countText(hits),
          countText(misses),
          shareText(hits, hits + misses),
          place === 0 ? countText(evictions) : '',
        ]),
      ),
  );
  return tableOf(
    'Caches of the HCA: works of each block that found what they needed, and that had to wait for it',
    ['cache and user', 'hits', 'misses', 'hit rate', 'evictions'],
    rows,
  );
}

/** Titles of the refusals of each kind, violated rules first. */
export const refusalTitles: Readonly<Record<RefusalKind, string>> = {
  rule: 'against the rules',
  packet: 'packet discarded',
  lawful: 'lawful, without effect',
};

/** Recovery by the transport and refusals of the device; empty without either. */
export function transportTable(
  nodes: readonly { readonly hca: Pick<NodeReport['hca'], 'transport' | 'violations'> }[],
): string[] {
  const namesOf = (part: 'transport' | 'violations'): Set<string> =>
    new Set(nodes.flatMap(({ hca }) => Object.keys(hca[part])));
  const rowOf = (part: 'transport' | 'violations', name: string, title: string): string[] => [
    title,
    ...nodes.map(({ hca }) => countText(hca[part][name] ?? 0)),
  ];
  const rows = [
    ...[...namesOf('transport')].map((name) => rowOf('transport', name, name)),
    ...Object.entries(refusalTitles).flatMap(([kind, title]) =>
      [...namesOf('violations')]
        .filter((name) => refusalKindOf(name) === kind)
        .map((name) => rowOf('violations', name, `${title}: ${name}`)),
    ),
  ];
  if (rows.length === 0) return [];
  return [tableOf('What the transport did to recover', ['', ...nodes.map((_, node) => `hca ${node}`)], rows)];
}

/** Counters of congestion control, by the names of mlx5's; empty without it. */
export function congestionTable(
  nodes: readonly { readonly hca: Pick<NodeReport['hca'], 'congestion'> }[],
): string[] {
  const names = Object.keys(nodes.find(({ hca }) => hca.congestion !== undefined)?.hca.congestion ?? {});
  if (names.length === 0) return [];
  const rows = names.map((name) => [
    name,
    ...nodes.map(({ hca }) =>
      countText((hca.congestion as Readonly<Record<string, number>> | undefined)?.[name] ?? 0),
    ),
  ]);
  return [tableOf('Congestion control', ['', ...nodes.map((_, node) => `hca ${node}`)], rows)];
}

/** Messages put in their receive WQEs; empty if there were none. */
function inlineReceiveTable(
  nodes: readonly { readonly hca: Pick<NodeReport['hca'], 'inlineReceives'> }[],
): string[] {
  const rows = nodes.flatMap(({ hca: { inlineReceives } }, node) =>
    inlineReceives === undefined
      ? []
      : [[`hca ${node}`, countText(inlineReceives.messages), bytesText(inlineReceives.bytes)]],
  );
  const title = 'Messages put in their receive WQE, without a key';
  return rows.length === 0 ? [] : [tableOf(title, ['', 'messages', 'bytes'], rows)];
}

function interruptTable(nodes: readonly NodeReport[]): string {
  const rows = nodes.flatMap(({ interrupts }, node) =>
    interrupts.map((row) => [
      `host ${node} vector ${row.vector}`,
      row.requested,
      row.moderated,
      row.masked,
      row.sent,
      row.delivered,
      row.handled,
    ]),
  );
  return tableOf(
    'Interrupts per vector',
    ['vector', 'requested', 'moderated', 'masked', 'sent', 'delivered', 'handled'],
    rows,
  );
}

/**
 * One direction of a cable: the hosts or switches at its ends, each with its port if that is not the first.
 * @param adapter word before a host that sends; left out: none
 */
export function directionText(
  { from, fromPort = 1, to, toPort = 1 }: Pick<WireReport, 'from' | 'fromPort' | 'to' | 'toPort'>,
  { switches = [] }: Pick<Report, 'switches'> = {},
  adapter = '',
): string {
  const endText = (node: number, port: number, word: string): string =>
    (switches.some((own) => own.node === node) ? 'switch ' : word) + portText({ node, port });
  return `${endText(from, fromPort, adapter)} → ${endText(to, toPort, '')}`;
}

/** Packets of a direction that were lost, damaged, repeated or refused, and their words. */
const fates = [
  ['corrupted', 'corrupted'],
  ['relayedDamage', 'accepted with a wrong CRC'],
  ['lost', 'lost'],
  ['duplicated', 'duplicated'],
  ['reordered', 'reordered'],
  ['dropped', 'dropped'],
  ['discarded', 'discarded'],
] as const;

export function wireTable(report: Pick<Report, 'wire' | 'elapsedPs' | 'switches'>, adapter = 'hca'): string {
  const { wire, elapsedPs } = report;
  const rows = wire.flatMap((direction) => [
    ...Object.entries(direction.opcodes).map(([opcode, { packets, bytes }]) => [
      `${directionText(direction, report, `${adapter} `)} ${opcode}`,
      countText(packets),
      bytesText(bytes),
      '',
    ]),
    ...Object.entries(direction.retransmitted).map(([opcode, { packets, bytes }]) => [
      `${directionText(direction, report, `${adapter} `)} ${opcode}, again`,
      countText(packets),
      bytesText(bytes),
      '',
    ]),
    ...fates
      .filter(([fate]) => (direction[fate] ?? 0) > 0)
      .map(([fate, words]) => [
        `${directionText(direction, report, `${adapter} `)} ${words}`,
        countText(direction[fate] ?? 0),
        '',
        '',
      ]),
    [
      `${directionText(direction, report, `${adapter} `)} in all`,
      countText(direction.packets),
      bytesText(direction.bytes),
      shareText(direction.busyPs, elapsedPs),
    ],
  ]);
  return tableOf('Cable: packets by opcode', ['direction and opcode', 'packets', 'bytes', 'busy'], rows);
}

function systemCallLine(nodes: readonly NodeReport[]): string {
  const parts = nodes.map(
    ({ cpu: { systemCalls } }, node) =>
      `host ${node}: ${countText(systemCalls.dataPath)} on the data path, ${countText(systemCalls.control)} to set up`,
  );
  return `System calls   ${parts.join(';  ')}`;
}

/** @param checks balances by name, and whether all hold */
export function checksLine(checks: { readonly balanced: boolean }): string {
  const { balanced, ...named } = checks;
  const balances = named as Readonly<Record<string, CheckReport>>;
  const failures = Object.entries(balances).flatMap(([name, check]) =>
    check.failures.map((failure) => `  ${name}: ${failure}`),
  );
  const names = Object.keys(balances).join(', ');
  return balanced ? `The ledgers balance: ${names}.` : `The ledgers do NOT balance:\n${failures.join('\n')}`;
}
