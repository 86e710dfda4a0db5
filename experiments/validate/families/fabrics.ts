/**
 * Group X: fabrics of more than two hosts, each host and switch a node of its own. Circumstances that a row does not
 * state are those of its source's text.
 *
 *     READs of many clients    `hca fabric outcast --verb read`: the server sends, each client reads
 *     HERD                     a store whose clients are on hosts of their own
 *     a switch more            one message at a time, with and without it
 */
import { parsedWorkload } from '../../workloads/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Figures, Point, PointMachine } from '../points.ts';
import { machineOf } from './machines.ts';
import { apt } from './streams.ts';

const group = 'X';

/** The card and the ports of a row. Its switch is a node of the topology, not a delay of the cable. */
function fabricMachine(row: Measurement, topology: string, set: PointMachine['set'] = {}): PointMachine {
  const { profile, set: declared } = /Apt/.test(row.link) ? apt : machineOf(row);
  const { 'wire.switchLatencyNs': _, ...own } = declared ?? {};
  const gigabits = Number(/\b(\d+) GbE\b/.exec(row.link)?.[1] ?? Number.NaN);
  const speed = Number.isNaN(gigabits) ? {} : { 'ethernet.gigabitsPerSecond': gigabits };
  const slot = row.pcie.startsWith('Gen2') ? { 'pcie.link.generation': 2 } : {};
  return { profile, topology, set: { ...own, ...speed, ...slot, ...set } };
}

/** Messages of a flow for each of its window; half of them are measured. */
const windowsPerFlow = 16;

/** Clients that keep their windows of READs of one server full. */
function readers(
  row: Measurement,
  { clients, qps, window, sizeBytes }: Readonly<Record<'clients' | 'qps' | 'window' | 'sizeBytes', number>>,
): Point {
  const messages = windowsPerFlow * window;
  return {
    machine: fabricMachine(row, `star:${clients + 1}`),
    workload: {
      kind: 'fabric',
      args: { pattern: 'outcast', verb: 'read', sizeBytes, messages, window, qpCount: qps },
    },
  };
}

/**
 * APNet 2019, 4.1: each of 16 clients is connected to each of 8 processes of the server. The text says that 16 READs
 * are outstanding on each connection; rate and time of Fig 2 agree with 16 of a client (Little's law: X-565 times X-609
 * is 258, X-575 times X-619 is 244).
 */
const roceReads = { qps: 8, window: 16 } as const;
const roceReadPoints = (row: Measurement): Point[] => [
  readers(row, { ...roceReads, clients: circumstance(row, 'clients'), sizeBytes: circumstance(row, 'size') }),
];
/** From this size on the frames of the answers fill the port. */
const wireBoundBytes = 1024;
const roceRead = (name: string, metric: RegExp, figure: string): RunFamily => ({
  name,
  of: { group, workload: /READ-Poll/, metric },
  workload: '16 hosts read from one, over 8 QPs each, 16 READs of each host in flight',
  points: roceReadPoints,
  figure,
  tolerance: (row) => (figure === 'gbps' && circumstance(row, 'size') >= wireBoundBytes ? 'ceiling' : 'rate'),
  over: 'size',
});

const roceFamilies: readonly Family[] = [
  roceRead('fabric: READ of 16 hosts by RoCE at 10 Gb/s', /^throughput/, 'gbps'),
  roceRead('fabric: READ of 16 hosts by RoCE, 90th percentile', /^latency/, 'p90Us'),
  {
    name: 'fabric: READ of 16 hosts by RoCE, events',
    of: { group, workload: /READ-Intr/ },
    workload: 'the same, with completions by interrupt',
    notRun: { kind: 'software', why: "hosts of a fabric's traffic poll for completions" },
  },
  {
    name: 'fabric: calls of 16 hosts by RoCE',
    of: { group, workload: /(?:WRITE|SEND)\/SEND/ },
    workload: 'calls that processes of the server answer',
    notRun: {
      kind: 'software',
      why: 'the time that a process of these ARM servers needs for an answer is not stated',
    },
  },
];

/** HERD 5.1: 17 client machines with 3 processes each, a window of at most 4; keys of 16 bytes. */
const herdClients = { machines: 17, processes: 3, window: 4 } as const;
const herdKeyBytes = 16;
/** HERD 5.1.2: a GET of FaRM reads a neighbourhood of six items. */
const neighbourhood = 6;
/** Value bytes of a row: items of 48 bytes have values of 32. */
const valueBytesOf = ({ params }: Measurement): number => {
  const value = /value=(\d+) B/.exec(params)?.[1];
  return value === undefined ? 48 - herdKeyBytes : Number(value);
};
const putPercentOf = ({ params }: Measurement): number => Number(/PUT=(\d+) %/.exec(params)?.[1] ?? 5);

/** Measured requests of a client, and those that warm the caches. */
const requests = { measured: 150, warmup: 40 } as const;

function storeOf(row: Measurement, servers: number, clients: number, window: number): Point {
  const hosts = Math.min(clients, herdClients.machines);
  const coreCount = Math.max(servers, Math.ceil(clients / hosts)) + 1;
  return {
    machine: fabricMachine(row, `star:${hosts + 1}`, { 'host.core.count': coreCount }),
    workload: {
      kind: 'store',
      test: {
        ...parsedWorkload('herd'),
        ...{ threads: clients, servers, window, iters: requests.measured, warmup: requests.warmup },
        ...{ gets: 100 - putPercentOf(row), valueSize: valueBytesOf(row) },
      },
    },
  };
}

const herdTotal = herdClients.machines * herdClients.processes;
const store = (
  name: string,
  of: RunFamily['of'],
  workload: string,
  points: RunFamily['points'],
): RunFamily => ({
  name,
  of: { group, ...of },
  workload,
  points,
  figure: 'mops',
  tolerance: 'rate',
});

const herdStore: readonly Family[] = [
  store(
    'fabric: HERD',
    { params: /^system=HERD;(?! value=4 B)/, metric: /^throughput/ },
    'the ready workload herd: 51 clients on 17 hosts, a server of 6 threads on one',
    (row) => [storeOf(row, 6, herdTotal, herdClients.window)],
  ),
  store(
    'fabric: HERD, one thread of the server',
    { workload: /^key-value, one server core/ },
    'the same with one thread of the server',
    (row) => [storeOf(row, 1, herdTotal, herdClients.window)],
  ),
  store(
    'fabric: HERD of ten clients',
    { params: /^client processes=10;/ },
    'the same with ten clients on as many hosts',
    (row) => [storeOf(row, 6, 10, circumstance(row, 'window'))],
  ),
];

const herdFamilies: readonly Family[] = [
  ...herdStore,
  {
    name: 'fabric: FaRM as HERD emulates it',
    of: { group, params: /^system=FaRM-em;(?! PUT=(?:50|100) )/, metric: /^throughput/ },
    workload: '17 hosts with 3 QPs each read six items; PUTs, a twentieth of the requests, are left out',
    points: (row) => [
      readers(row, {
        ...{ clients: herdClients.machines, qps: herdClients.processes },
        window: herdClients.processes * herdClients.window,
        sizeBytes: neighbourhood * (herdKeyBytes + valueBytesOf(row)),
      }),
    ],
    figure: 'mops',
    tolerance: 'rate',
  },
  {
    name: 'fabric: HERD, values of 4 bytes',
    of: { group, params: /^system=HERD; value=4 B/ },
    workload: 'the same',
    notRun: { kind: 'software', why: 'values of the store have at least 8 bytes, which prove their key' },
  },
  {
    name: 'fabric: other stores as HERD emulates them',
    of: {
      group,
      params: /^system=(?:Pilaf-em-OPT|FaRM-em-VAR|FaRM-em; PUT=(?:50|100) )/,
      metric: /^throughput/,
    },
    workload: 'READs that depend on one another, or answers of the server',
    notRun: { kind: 'software', why: 'no program has the emulated requests of these systems' },
  },
  {
    name: 'fabric: stores under less than full load',
    of: { group, where: /^Fig 11$/, source: /^HERD/ },
    workload: 'mean latency over the load',
    notRun: { kind: 'unstated', why: 'the number of clients of each load is not stated' },
  },
  {
    name: 'fabric: HERD of 220 clients and more',
    of: { group, params: /^client processes=[2-9]\d\d;|^window=4$/, source: /^HERD/ },
    workload: 'clients on up to 186 machines',
    notRun: { kind: 'size', why: 'a fabric has at most 128 nodes' },
  },
  {
    name: 'fabric: HERD, requests of a core',
    of: { group, params: /^per core/ },
    workload: 'the rate of six threads over six',
    notRun: { kind: 'no measurement', why: 'X-033 over the number of threads' },
  },
];

const writeLatency = (machine: PointMachine, test: 'write-lat' | 'send-lat' | 'read-lat'): Point => ({
  machine,
  workload: { kind: 'perf', test: { test, size: 2, iters: 100 } },
});
const testOf = ({ workload }: Measurement): 'write-lat' | 'send-lat' | 'read-lat' =>
  workload === 'ib_read_lat' ? 'read-lat' : workload === 'ib_send_lat' ? 'send-lat' : 'write-lat';
/**
 * SX6030: 40 Gb/s in Ethernet mode. Both machines of the difference have the switch's profile, which changes nothing
 * without a switch.
 */
const tulips = { profile: 'connectx5-100gbe+sx1036', set: { 'ethernet.gigabitsPerSecond': 40 } } as const;
/**
 * HDR100 has two lanes, and the error correction that every HDR link has. The rows name no switch: its delay is the
 * default one.
 */
const hdr100 = { 'wire.speed': 'HDR', 'wire.lanes': '2', 'wire.fec': 'rs-544' } as const;
const differenceOf =
  (name: string, scale: number) =>
  ([without, with_]: readonly Figures[]): number =>
    ((with_?.[name] ?? Number.NaN) - (without?.[name] ?? Number.NaN)) * scale;

const switchFamilies: readonly Family[] = [
  {
    name: 'fabric: a round trip through a switch of Ethernet',
    of: { group, nic: /ConnectX-5/, link: /switch SX6030/ },
    workload: 'the difference of two rows: an echo of WRITEs through a switch, and over a cable',
    base: ({ id }) => (id === 'X-545' ? 'X-544' : 'X-546'),
    points: () =>
      [{}, { topology: 'star:2' }].map((topology) => writeLatency({ ...tulips, ...topology }, 'write-lat')),
    figure: differenceOf('roundTripUs', 1e3),
    tolerance: 'rate',
  },
  {
    name: 'fabric: two switches more',
    of: { group, link: /3 switches on the path/ },
    workload: 'the difference of two rows: the same test between leaves, and at one leaf',
    base: ({ id }) => `X-${Number(id.slice(2)) - 1}`,
    points: (row) =>
      ['star:2', 'leaf-spine:1x2:2'].map((topology) =>
        writeLatency({ profile: 'connectx5-gen3', set: hdr100, topology }, testOf(row)),
      ),
    figure: differenceOf('typicalUs', 1),
    tolerance: 'rate',
  },
  {
    name: 'fabric: hosts of the differences, ConnectX-5',
    of: { group, link: /^Ethernet, hosts joined directly/ },
    workload: 'packets of a stack in user space',
    notRun: { kind: 'software', why: 'the level of the stack; its difference through a switch is run' },
  },
  {
    name: 'fabric: hosts of the differences, HDR',
    of: { group, link: /1 switch on the path/ },
    workload: 'latency tests at one leaf',
    notRun: { kind: 'card', why: 'no profile is of a card at HDR; the difference between leaves is run' },
  },
  {
    name: 'fabric: delay of a switch of InfiniBand',
    of: { group, workload: /^switch latency as given/ },
    workload: 'follows from the configuration',
    notRun: { kind: 'no measurement', why: 'the parameter switch.latencyNs follows from it' },
  },
];

const unmodelled = (
  name: string,
  of: RunFamily['of'],
  kind: 'software' | 'card' | 'size' | 'unstated',
  why: string,
): Family => ({ name: `fabric: ${name}`, of: { group, ...of }, workload: name, notRun: { kind, why } });

const otherSources: readonly Family[] = [
  unmodelled(
    'transactions and calls of FaSST, FaRM and DrTM+R',
    { where: /^(?:6\.|3\.3\.2|4\.5)/, source: /as quoted in FaSST|^FaSST/ },
    'software',
    'transactions and the work of their coroutines are no programs here',
  ),
  unmodelled(
    'datagrams of 69 machines for days',
    { where: /^3\.4\.1/, source: /^FaSST/ },
    'size',
    'trillions of packets of 69 machines',
  ),
  unmodelled(
    'stores of RFP',
    { source: /^RFP/ },
    'software',
    'calls whose answer the client reads are no program here, nor is the work of the server',
  ),
  unmodelled(
    'writes and calls of LITE',
    { source: /^LITE/ },
    'software',
    'LITE is a layer in the kernel, with threads of its own',
  ),
  unmodelled('HPCC, testbed', { nic: /^FPGA/ }, 'card', 'the card is an FPGA with two ports of 25 Gb/s'),
  unmodelled(
    'HPCC, simulation',
    { nic: /^ns-3/ },
    'size',
    'a fat tree of 320 hosts; a fabric has at most 128 nodes',
  ),
  unmodelled(
    'HPCC, production',
    { nic: /production pod/ },
    'unstated',
    'neither cards nor switches nor traffic are stated',
  ),
  unmodelled(
    'MPI between two hosts',
    { source: /^openhpc/ },
    'software',
    'MVAPICH2, with eager and rendezvous protocols of its own',
  ),
  unmodelled(
    'MPI over IPoIB',
    { source: /^jebtang/ },
    'software',
    "the simulated kernel's sockets use Ethernet; it has no IPoIB",
  ),
  unmodelled(
    'collectives of SGI MPT',
    { source: /Pleiades/, workload: /^osu_(?:allreduce|bcast)/ },
    'software',
    '24 ranks of a host combine in its memory first, by algorithms that are not stated',
  ),
  unmodelled(
    'pairs of SGI MPT',
    { source: /Pleiades/, workload: /^osu_(?:latency|bw|bibw|mbw_mr)/ },
    'card',
    'the card is not stated; of two rails a pair reaches three quarters of one',
  ),
];

export const fabricFamilies: readonly Family[] = [
  ...roceFamilies,
  ...herdFamilies,
  ...switchFamilies,
  ...otherSources,
];
