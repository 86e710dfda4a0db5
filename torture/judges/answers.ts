/**
 * Judges the requests and responses of reliable connections, as an observer of the cable sees them, by IBTA vol 1,
 * 9.7.2, 9.7.5.1 and 9.7.7:
 *
 *     capture of both ends, connections by the commands of the drivers ─▶ by end: what came, and what left
 *       ├─ nothing is acknowledged that has not come; READs and atomics get the answers that they asked for
 *       ├─ answers leave in the order of their PSNs, and go back only for a request that was repeated
 *       ├─ the MSN never falls, and counts the messages that are complete
 *       └─ a requester has no more PSNs outstanding than its peer can tell apart
 */
import type { NodeConnections } from '../../machine/index.ts';
import { isOnEthernet } from '../ethernet-cable.ts';
import type { Played } from '../run-story.ts';
import type { Story } from '../story.ts';
import { AnsweringEnd, type AnswerRules } from './answers/answering-end.ts';
import { AskingEnd } from './answers/asking-end.ts';
import { isAnswer, type TransportPacket, transportPacketIn } from './answers/transport-packet.ts';
import { type CableEnd, cableEndsOf, copyNote, hasNote, isIntact } from './ethernet/cable-end.ts';
import { traitsOf } from './scene-traits.ts';

type ConnectionEnd = NodeConnections['ends'][number];

/** Both halves of an end. */
interface Judged {
  readonly answering: AnsweringEnd;
  readonly asking: AskingEnd;
}

interface Passed {
  readonly atPs: bigint;
  readonly isSent: boolean;
  readonly packet: TransportPacket;
}

export function judgeAnswers({ story, capture, connections, config, error }: Played): string[] {
  const ends = capture === undefined ? [] : cableEndsOf(capture);
  if (ends.length !== 2 || ends.some(({ isWhole }) => !isWhole) || error !== undefined) return [];
  const rules = { ...rulesOf(story), keepsLater: config.hca.lossRecovery === 'selective-repeat' };
  const isEthernet = isOnEthernet(story);
  return ends.flatMap((end) => {
    const made = connections.filter(({ node }) => node === end.node).flatMap((of) => of.ends);
    return judgeEnd(passedAt(end, isEthernet), made, rules, isEthernet).map(
      (what) => `node ${end.node}: ${what}`,
    );
  });
}

function rulesOf(story: Story): Omit<AnswerRules, 'keepsLater'> {
  const { climate, faults } = story;
  const fields = ['port', 'cable', 'device', 'reset', 'catastrophic'];
  const isBroken = climate === 'broken' || faults.some((fault) => fields.some((field) => field in fault));
  // A frame that is damaged before it leaves is read by no judge.
  const hasDamage = isOnEthernet(story) && faults.some(({ crc }) => crc === 'icrc');
  return {
    isDisordered: faults.some((fault) => fault['packet'] === 'reordered'),
    hasGaps: isBroken || hasDamage || traitsOf(story).hasResets === true,
  };
}

/**
 * Packets of connections at one end of the cable, by time: those that arrived undamaged, and those that left, once
 * each.
 */
function passedAt({ sent, received }: CableEnd, isEthernet: boolean): Passed[] {
  const of = (isSent: boolean): Passed[] =>
    (isSent
      ? sent.filter(({ note }) => !hasNote(note, copyNote))
      : received.filter(({ note }) => isIntact(note))
    ).flatMap(({ bytes, atPs }) => {
      const packet = transportPacketIn(bytes, isEthernet);
      return packet === undefined ? [] : [{ atPs, isSent, packet }];
    });
  // A packet that arrives at an instant can be answered at it.
  return [...of(false), ...of(true)].sort((left, right) =>
    left.atPs < right.atPs ? -1 : left.atPs > right.atPs ? 1 : 0,
  );
}

function judgeEnd(
  passed: readonly Passed[],
  made: readonly ConnectionEnd[],
  rules: AnswerRules,
  isEthernet: boolean,
): string[] {
  const judged = new Map<ConnectionEnd, Judged>();
  const of = (end: ConnectionEnd): Judged => {
    const known = judged.get(end) ?? {
      answering: new AnsweringEnd(end.firstPsn, end.mtuBytes, rules),
      asking: new AskingEnd(end.mtuBytes),
    };
    judged.set(end, known);
    return known;
  };
  for (const { atPs, isSent, packet } of passed) {
    const { destinationQpn, destination, operation } = packet;
    const open = made.filter(
      ({ fromPs, untilPs }) => BigInt(fromPs) <= atPs && (untilPs === undefined || atPs <= BigInt(untilPs)),
    );
    if (!isSent) {
      const end = open.findLast(({ qpn }) => qpn === destinationQpn);
      if (end === undefined) continue;
      if (isAnswer(operation)) of(end).asking.answered(packet);
      else of(end).answering.requested(packet);
      continue;
    }
    const [end, ...others] = open.filter(
      ({ remoteQpn, remoteLid, remoteMac }) =>
        remoteQpn === destinationQpn && (isEthernet ? remoteMac : String(remoteLid)) === destination,
    );
    // Two connections that send to the same queue pair cannot be distinguished.
    if (end === undefined || others.length > 0) continue;
    const { answering, asking } = of(end);
    const wrong = isAnswer(operation) ? answering.answered(packet) : asking.requested(packet);
    if (wrong.length > 0) return [`QP 0x${end.qpn.toString(16)} at ${atPs} ps ${wrong.join('; ')}`];
  }
  return [];
}
