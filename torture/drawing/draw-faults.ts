/**
 * Draws the faults of a story from tables: an effect on packets with a selection of packets, and faults of devices. In
 * calm and flawed climates only faults that programs notice by their clocks at most.
 *
 *     effects × selectors ──► by number · by header or chance, with so many shots · by chance without an end (a bad cable)
 */
import type { FaultEntry } from '../../machine/faults/index.ts';
import type { Random } from '../../sim/index.ts';
import { type Story, sendsOf } from '../story.ts';
import { verbs } from '../verbs.ts';
import { pick, pickRow } from './choice.ts';

/** Value of a fault's field: fixed, or drawn. */
type Field = string | number | ((random: Random) => string | number);

interface FaultRow {
  readonly weight: number;
  readonly fields: Readonly<Record<string, Field>>;
}

const row = (weight: number, fields: FaultRow['fields']): FaultRow => ({ weight, fields });

const made = (random: Random, { fields }: FaultRow): FaultEntry =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      typeof field === 'function' ? field(random) : field,
    ]),
  );

const below =
  (most: number) =>
  (random: Random): number =>
    random.between(1, most);
const within =
  (mostNs: number) =>
  (random: Random): string =>
    `${random.between(1, mostNs)}ns`;
/** Shorter than a round trip, some round trips, or longer than many a time-out. */
const anyDelay = (random: Random): string => within(pick(random, [1000, 30_000, 3_000_000]))(random);
const anyNode = (random: Random): number => random.below(2);
const seed = (random: Random): number => random.uint32();
const percent =
  (most: number) =>
  (random: Random): string =>
    `${random.between(1, most)}%`;

const lost = row(2, { packet: 'lost' });
const late = row(2, { packet: 'late', delay: within(20_000) });
const duplicated = row(1.5, { packet: 'duplicated', delay: anyDelay });
const reordered = row(1, { packet: 'reordered', by: below(20), delay: anyDelay });
const overtaken = row(0.5, { packet: 'reordered', by: 1, delay: anyDelay });
const damagedWhere = (random: Random): string => pick(random, ['anywhere', 'header', 'payload']);
const damaged = row(1, { packet: 'corrupted', where: damagedWhere });
const damagedUnderVcrc = row(1, { packet: 'corrupted', where: damagedWhere, crc: 'icrc' });

/** Effects of faults by number; `corrupted` anywhere. */
const effects: readonly FaultRow[] = [
  late,
  lost,
  duplicated,
  reordered,
  overtaken,
  row(3, { packet: 'corrupted' }),
];
/** … and by rule. */
const effectsByRule: readonly FaultRow[] = [
  late,
  lost,
  duplicated,
  reordered,
  damaged,
  damagedUnderVcrc,
  row(1, { packet: 'congested' }),
];
/** Effects of a bad cable, on up to one packet in ten. */
const effectsOfCable: readonly FaultRow[] = [
  lost,
  row(1, { packet: 'corrupted', where: 'header' }),
  row(1, { packet: 'corrupted', where: 'payload', crc: 'icrc' }),
  row(1, { packet: 'duplicated', delay: within(40_000) }),
  row(1, { packet: 'reordered', by: below(6), delay: within(2000) }),
  row(1, { packet: 'late', delay: within(40_000) }),
];

const spurious = row(1, {
  interrupt: 'spurious',
  vector: (random) => random.below(4),
  nth: below(30),
  node: anyNode,
});
const lateInterrupt = row(1, {
  interrupt: 'late',
  nth: below(20),
  delay: within(200_000),
  node: anyNode,
});

/** Everything that is no packet: interrupts, reads, ports, cables, devices. */
const afterConnecting = { after: 'RTR2RTS_QP', delay: within(100_000), node: anyNode };
const outage = (random: Random): string => `${random.between(1, 300)}us`;
const deviceFaults: readonly FaultRow[] = [
  row(1, { interrupt: 'lost', nth: below(30), node: anyNode }),
  spurious,
  lateInterrupt,
  row(1, {
    read: (random) => pick(random, ['any', 'wqeRead', 'payloadRead', 'translation', 'context']),
    nth: below(200),
    answer: (random) => pick(random, ['lost', 'unsupportedRequest', 'completerAbort', 'poisoned']),
    node: anyNode,
  }),
  row(1, { port: 'down', for: outage, ...afterConnecting }),
  row(1, { cable: 'pulled', for: outage, ...afterConnecting }),
  row(1, { device: 'gone', ...afterConnecting }),
];

const several = <T>(random: Random, most: number, draw: () => T): T[] =>
  Array.from({ length: random.between(1, most) }, draw);

/** Shares of the stories with lost packets, and of those with further failures, that also have faults by rule. */
const ruleShare = { lossy: 0.5, broken: 0.3 };
/** Share of the calm stories without faults that get a bad cable. */
const badCableShare = 0.2;

/**
 * @param answering node whose responses alone are lost, while nothing else fails; undefined: either direction
 * @returns the story with the faults of its climate; on a bad cable a calm one becomes lossy
 */
export function withFaults(random: Random, story: Story, answering?: number): Story {
  const { climate } = story;
  if (climate === 'calm' || climate === 'flawed') {
    const faults = drawHarmless(random);
    if (climate !== 'calm' || faults.length > 0 || !random.chance(badCableShare)) return { ...story, faults };
    return { ...story, climate: 'lossy', faults: drawBadCable(random) };
  }
  const named = opcodesSent(story);
  return {
    ...story,
    faults: [
      ...(answering === undefined
        ? several(random, random.chance(0.3) ? 12 : 3, () => drawByNumber(random))
        : several(random, 3, () => ({
            packet: 'corrupted',
            nth: random.between(1, 12),
            node: answering,
          }))),
      ...(climate === 'broken' ? several(random, 3, () => made(random, pickRow(random, deviceFaults))) : []),
      ...(random.chance(ruleShare[climate]) ? several(random, 3, () => drawByRule(random, named)) : []),
    ],
  };
}

/** Programs notice them by their clocks at most. */
function drawHarmless(random: Random): FaultEntry[] {
  if (random.chance(0.1)) return [made(random, lateInterrupt)];
  if (!random.chance(0.1)) return [];
  return several(random, 4, () => made(random, random.chance(0.7) ? spurious : lateInterrupt));
}

function drawByNumber(random: Random): FaultEntry {
  const first = random.between(1, random.chance(0.5) ? 12 : 200);
  const nth = random.chance(0.2) ? `${first}-${first + random.below(6)}` : first;
  return { ...made(random, pickRow(random, effects)), nth, node: anyNode(random) };
}

/** Draws a fault by header or chance; when its shots are used up the cable is good, and everything has to end. */
function drawByRule(random: Random, named: readonly string[]): FaultEntry {
  const header = made(random, pickRow(random, headers(named)));
  const isByChance = Object.keys(header).length === 0 || random.chance(0.3);
  // With a number as well: the fault does not begin with the first such packet, but a later one.
  const nth = isByChance || random.chance(0.7) ? {} : { nth: `${random.between(1, 12)}-` };
  return {
    ...made(random, pickRow(random, effectsByRule)),
    ...header,
    ...(isByChance ? { chance: percent(random.chance(0.5) ? 10 : 60)(random), seed: seed(random) } : nth),
    shots: random.between(1, random.chance(0.7) ? 3 : 12),
    node: anyNode(random),
  };
}

/** Treats a share of all packets badly for as long as the story lasts, either way or one way, in one manner or in all. */
function drawBadCable(random: Random): FaultEntry[] {
  const nodes = random.chance(0.7) ? [0, 1] : [random.below(2)];
  const chance = percent(10)(random);
  const rows = random.chance(0.3) ? effectsOfCable : [pick(random, effectsOfCable)];
  const kinds = rows.map((of) => ({ ...made(random, of), chance }));
  return nodes.flatMap((node) => kinds.map((kind) => ({ ...kind, node, seed: seed(random) })));
}

/** The driver numbers QPs from here on; a program has up to some twenty. */
const firstQpn = 0x208;
const qpnCount = 24;

/** Which packets a fault by rule names; empty: packets of any kind. */
const headers = (named: readonly string[]): readonly FaultRow[] => [
  row(1, {}),
  row(0.9, { only: (random) => pick(random, ['requests', 'responses']) }),
  row(0.1, { only: 'datagrams' }),
  row(1, { opcode: (random) => pick(random, named) }),
  row(1, { qpn: (random) => firstQpn + random.below(qpnCount) }),
  row(0.8, { psn: drawPsns }),
  row(1.2, { psn: drawPsns, only: (random) => pick(random, ['requests', 'responses']) }),
];

/** Draws a range of PSNs, counted from the first of each connection, so that a repeated packet may be lost again. */
function drawPsns(random: Random): string {
  const first = random.below(random.chance(0.6) ? 6 : 60);
  return random.chance(0.6) ? `+${first}` : `+${first}-${first + random.below(8)}`;
}

/** Opcodes whose packets stories send, by name. */
const opcodes = [
  ...['ACKNOWLEDGE', 'ATOMIC_ACKNOWLEDGE', 'FETCH_ADD', 'COMPARE_SWAP', 'RDMA_READ_REQUEST'],
  ...['FIRST', 'MIDDLE', 'LAST', 'ONLY'].flatMap((part) => [
    `RDMA_READ_RESPONSE_${part}`,
    `RDMA_WRITE_${part}`,
  ]),
  ...['RDMA_WRITE_ONLY_WITH_IMMEDIATE', 'SEND_FIRST', 'SEND_LAST', 'SEND_ONLY'],
  ...['SEND_ONLY_WITH_IMMEDIATE', 'SEND_ONLY_WITH_INVALIDATE'],
]
  .map((name) => `RC_${name}`)
  .concat('UC_RDMA_WRITE_LAST', 'UC_SEND_ONLY', 'UD_SEND_ONLY');

/** Opcodes of the story's packets; all, for a story that sends nothing. */
function opcodesSent(story: Story): readonly string[] {
  const sent = new Set<string>();
  for (const { program, qp, plan } of sendsOf(story)) {
    const { transport } = story.programs[program]!.qps[qp]!;
    if (transport === 'RC') sent.add('RC_ACKNOWLEDGE');
    for (const word of verbs.get(plan.opcode)?.packets ?? [])
      for (const opcode of opcodes)
        if (opcode.startsWith(`${transport}_`) && opcode.includes(`_${word}`)) sent.add(opcode);
  }
  return sent.size === 0 ? opcodes : [...sent];
}
