/**
 * Faults that name packets by their headers, by chance and by number of shots (docs/how-to/faults.md), beside those by number that a story
 * has. Each has a number of shots: when they are used up, the cable is good. Added to a finished story from random numbers of its
 * own, so that the rest of it stays as it was.
 */

import type { FaultEntry } from '../machine/faults/index.ts';
import type { Random } from '../sim/index.ts';
import {
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_IMM,
  IBV_WR_SEND_WITH_INV,
} from '../userlib/index.ts';
import { type Story, sendsOf } from './story.ts';

/** Of the stories whose packets get lost, and of those in which more than packets fails. */
const share = { lossy: 0.5, broken: 0.3 };
/** Of the stories with such rules, how many have the packets of their cable as bytes. */
const bytesShare = 0.3;

/** @returns the story, in some cases with rules; opcodes that these name are of such packets as its requests are sent in */
export function withPacketRules(random: Random, story: Story): Story {
  const { climate, faults, set } = story;
  if (climate !== 'lossy' && climate !== 'broken') return story;
  if (!random.chance(share[climate])) return story;
  const rules = Array.from({ length: 1 + random.below(3) }, () => drawRule(random, opcodesSent(story)));
  const isBytes = random.chance(bytesShare) && !('wire.packetForm' in set);
  return {
    ...story,
    set: isBytes ? { ...set, 'wire.packetForm': 'bytes' } : set,
    faults: [...faults, ...rules],
  };
}

/** Opcodes whose packets stories send, by name. */
const opcodes = [
  'RC_ACKNOWLEDGE',
  'RC_ATOMIC_ACKNOWLEDGE',
  'RC_FETCH_ADD',
  'RC_COMPARE_SWAP',
  'RC_RDMA_READ_REQUEST',
  'RC_RDMA_READ_RESPONSE_FIRST',
  'RC_RDMA_READ_RESPONSE_MIDDLE',
  'RC_RDMA_READ_RESPONSE_LAST',
  'RC_RDMA_READ_RESPONSE_ONLY',
  'RC_RDMA_WRITE_FIRST',
  'RC_RDMA_WRITE_MIDDLE',
  'RC_RDMA_WRITE_LAST',
  'RC_RDMA_WRITE_ONLY',
  'RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE',
  'RC_SEND_FIRST',
  'RC_SEND_LAST',
  'RC_SEND_ONLY',
  'RC_SEND_ONLY_WITH_IMMEDIATE',
  'RC_SEND_ONLY_WITH_INVALIDATE',
  'UC_RDMA_WRITE_LAST',
  'UC_SEND_ONLY',
  'UD_SEND_ONLY',
];
const classes = ['requests', 'responses', 'datagrams'];
/** The driver numbers QPs from here on; a program has up to some twenty. */
const firstQpn = 0x208;
const qpnCount = 24;

/** Words in the opcodes of the packets that a request leads to. */
const wordsByVerb = new Map<number, readonly string[]>([
  [IBV_WR_SEND, ['SEND']],
  [IBV_WR_SEND_WITH_IMM, ['SEND']],
  [IBV_WR_SEND_WITH_INV, ['SEND']],
  [IBV_WR_RDMA_WRITE, ['RDMA_WRITE']],
  [IBV_WR_RDMA_WRITE_WITH_IMM, ['RDMA_WRITE']],
  [IBV_WR_RDMA_READ, ['RDMA_READ']],
  [IBV_WR_ATOMIC_CMP_AND_SWP, ['COMPARE_SWAP', 'ATOMIC_ACKNOWLEDGE']],
  [IBV_WR_ATOMIC_FETCH_AND_ADD, ['FETCH_ADD', 'ATOMIC_ACKNOWLEDGE']],
]);

/** Opcodes of the story's packets; all, for a story that sends nothing. */
function opcodesSent(story: Story): readonly string[] {
  const sent = new Set<string>();
  for (const { program, qp, plan } of sendsOf(story)) {
    const { transport } = story.programs[program]!.qps[qp]!;
    if (transport === 'RC') sent.add('RC_ACKNOWLEDGE');
    for (const word of wordsByVerb.get(plan.opcode) ?? [])
      for (const opcode of opcodes)
        if (opcode.startsWith(`${transport}_`) && opcode.includes(`_${word}`)) sent.add(opcode);
  }
  return sent.size === 0 ? opcodes : [...sent];
}

function drawRule(random: Random, named: readonly string[]): FaultEntry {
  const effect = drawEffect(random);
  const header = drawHeader(random, named);
  const isByChance = Object.keys(header).length === 0 || random.chance(0.3);
  const chance = isByChance
    ? { chance: `${1 + random.below(random.chance(0.5) ? 10 : 60)}%`, seed: random.uint32() }
    : {};
  // With a number as well: not the first such packet, but one after it.
  const nth = isByChance || random.chance(0.7) ? {} : { nth: `${1 + random.below(12)}-` };
  return {
    ...effect,
    ...header,
    ...chance,
    ...nth,
    shots: 1 + random.below(random.chance(0.7) ? 3 : 12),
    node: random.below(2),
  };
}

function drawEffect(random: Random): FaultEntry {
  const delayNs = 1 + random.below([1000, 30_000, 3_000_000][random.below(3)]!);
  switch (random.below(8)) {
    case 0:
      return { packet: 'late', delay: `${1 + random.below(20_000)}ns` };
    case 1:
      return { packet: 'duplicated', delay: `${delayNs}ns` };
    case 2:
      return { packet: 'reordered', by: 1 + random.below(20), delay: `${delayNs}ns` };
    case 3:
      return { packet: 'congested' };
    case 4:
    case 5:
      return { packet: 'lost' };
    default:
      return {
        packet: 'corrupted',
        where: ['anywhere', 'header', 'payload'][random.below(3)]!,
        ...(random.chance(0.5) ? { crc: 'icrc' } : {}),
      };
  }
}

/** Empty: packets of any kind. */
function drawHeader(random: Random, named: readonly string[]): FaultEntry {
  switch (random.below(6)) {
    case 0:
      return {};
    case 1:
      return { only: classes[random.below(random.chance(0.9) ? 2 : 3)]! };
    case 2:
      return { opcode: named[random.below(named.length)]! };
    case 3:
      return { qpn: firstQpn + random.below(qpnCount) };
    default:
      return { psn: drawPsns(random), ...(random.chance(0.6) ? { only: classes[random.below(2)]! } : {}) };
  }
}

/** From the first of each connection on, so that a packet that is repeated may be lost again. */
function drawPsns(random: Random): string {
  const first = random.below(random.chance(0.6) ? 6 : 60);
  return random.chance(0.6) ? `+${first}` : `+${first}-${first + random.below(8)}`;
}
