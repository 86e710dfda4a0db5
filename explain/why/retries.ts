/**
 * Explains why a connection receives no answer: retries exceeded, or requests that wait without a timeout. The rows
 * follow the order in which a packet meets the checks: the cable, the address, the number, the service, the state, the
 * partition, the route, the return path, the sequence.
 */
import { mask24 } from '../../base/index.ts';
import type { DropEvidence, PostEvidence, QpEvidence } from '../../machine/evidence/index.ts';
import { counted, durationText, type Explanation, hex, qpName, type Rule, vlanText } from './cause.ts';
import { overrunExplained } from './overruns.ts';
import { damagerOf, type Scene, stateAt } from './scene.ts';
import { timeoutDurations, timeoutsText } from './time-outs.ts';

export interface NoAnswer {
  readonly scene: Scene;
  readonly node: number;
  readonly qp: QpEvidence;
  readonly post: PostEvidence | undefined;
  /** When the request failed, or the run ended. */
  readonly atPs: number;
}

const connectLine = ({ scene, node, qp }: NoAnswer): string | undefined =>
  scene.lines(node, 'QP', qp.qpn)?.toRtr;

const timeoutsOrNone = (qp: QpEvidence): string =>
  qp.timeoutCode === 0 && qp.timeouts === 0 ? 'with timeout 0, which never ends' : timeoutsText(qp);

const linkDown: Rule<NoAnswer> = ({ scene, node, qp, atPs }) => {
  const ports = [scene.device(node), scene.farDevice(node)].flatMap((device) => device ?? []);
  const isDown = ({ port }: (typeof ports)[number]): boolean => {
    const lastDown = port.downPs.findLast((ps) => ps <= atPs);
    const lastUp = port.upPs.findLast((ps) => ps <= atPs);
    return lastDown !== undefined && (lastUp === undefined || lastUp < lastDown);
  };
  const down = ports.find(isDown);
  if (down === undefined && qp.timeoutsWhileDown === 0) return undefined;
  const at = down?.port.downPs.findLast((ps) => ps <= atPs);
  return {
    cause: 'link-down',
    sentence: `The link of host ${down?.node ?? node} went down${at === undefined ? '' : ` at ${durationText(at)}`} and stayed down through ${counted(Math.max(qp.timeoutsWhileDown, 1), 'time-out')} of ${qpName(node, qp.qpn)}`,
    evidence: {
      timeouts: qp.timeouts,
      timeoutsWhileDown: qp.timeoutsWhileDown,
      ...(at === undefined ? {} : { downPs: at }),
    },
    advice:
      'Bring the port up, or make timeout × retry_cnt longer than the outage; a QP in ERR must be connected again.',
  };
};

/** The other end of the cable is outside this machine and no plug returns the packets, so its addresses are unknown. */
const isStrangers = ({ scene, node }: NoAnswer, drop: DropEvidence | undefined): boolean =>
  scene.farDevice(node) === undefined && drop === undefined;

const wrongAddress: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp } = symptom;
  // A plug in the port leads back to it.
  const far = scene.farDevice(node) ?? scene.device(node);
  const isEthernet = scene.device(node)?.isEthernet === true;
  if (isEthernet || far === undefined || scene.target(node, qp) !== undefined) return undefined;
  const drop = scene.drops(far.node, ['packetForeignLid', 'packetForeignGid']);
  if (isStrangers(symptom, drop)) return undefined;
  return {
    cause: 'wrong-lid',
    sentence: `${qpName(node, qp.qpn)} sends to LID ${hex(qp.path.lid)}, which no port has: the port at the other end has LID ${hex(far.port.lid)} and dropped ${counted(drop?.count ?? 0, 'packet')} as not its own (packetForeignLid)`,
    evidence: {
      lid: qp.path.lid,
      portLid: far.port.lid,
      packetForeignLid: drop?.count ?? 0,
      timeouts: qp.timeouts,
    },
    mendLine: connectLine(symptom),
    advice: 'Set ah_attr.dlid to the lid that the peer’s ibv_query_port returns.',
  };
};

const wrongGid: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp } = symptom;
  const far = scene.farDevice(node) ?? scene.device(node);
  if (scene.device(node)?.isEthernet !== true || far === undefined || scene.target(node, qp) !== undefined)
    return undefined;
  const drop = scene.drops(far.node, ['packetForeignGid', 'foreignMac']);
  if (isStrangers(symptom, drop)) return undefined;
  return {
    cause: 'wrong-gid',
    sentence: `${qpName(node, qp.qpn)} sends to GID ${qp.path.gid}, which no port has: the other end has ${far.port.gids.join(', ')} and dropped ${counted(drop?.count ?? 0, 'packet')}`,
    evidence: { gid: qp.path.gid ?? '', dropped: drop?.count ?? 0, timeouts: qp.timeouts },
    mendLine: connectLine(symptom),
    advice:
      'Set ah_attr.grh.dgid to the GID that the peer’s ibv_query_gid returns for the index that it uses.',
  };
};

const wrongMac: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp } = symptom;
  const target = scene.target(node, qp);
  const { mac } = qp.path;
  if (target?.isEthernet !== true || mac === undefined || target.port.macs.includes(mac)) return undefined;
  const drop = scene.drops(target.node, ['foreignMac']);
  return {
    cause: 'wrong-mac',
    sentence: `${qpName(node, qp.qpn)} sends to MAC ${mac}, but the port with GID ${qp.path.gid} has ${target.port.macs.join(', ')} and dropped ${counted(drop?.count ?? 0, 'frame')} (foreignMac)`,
    evidence: { mac, foreignMac: drop?.count ?? 0, timeouts: qp.timeouts },
    mendLine: connectLine(symptom),
    advice: 'The kernel resolved the GID to another MAC: check neighbour tables (ip neigh) and the GID.',
  };
};

const wrongVlan: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp } = symptom;
  const target = scene.target(node, qp);
  const drop = target && scene.drops(target.node, ['vlanFilter']);
  const peer = scene.peer(node, qp);
  const differs = peer !== undefined && (peer.of.path.vlan ?? -1) !== (qp.path.vlan ?? -1);
  if (drop === undefined && !differs) return undefined;
  return {
    cause: 'wrong-vlan',
    sentence: `${qpName(node, qp.qpn)} sends with ${vlanText(qp.path.vlan)}, its peer expects ${vlanText(peer?.of.path.vlan)}`,
    evidence: { vlan: qp.path.vlan ?? -1, vlanFilter: drop?.count ?? 0 },
    mendLine: connectLine(symptom),
    advice: 'Use GIDs of the same VLAN at both ends.',
  };
};

/** The existing QP at the other end that was probably meant, as advice. */
function meantText({ scene, node, qp }: NoAnswer): string {
  const meant = scene.intended(node, qp);
  return meant === undefined || meant.of.qpn === qp.remoteQpn
    ? 'Set dest_qp_num to the qp_num of the peer’s QP.'
    : `QP ${hex(meant.of.qpn)} of host ${meant.node} is connected to this one: set dest_qp_num to ${hex(meant.of.qpn)}.`;
}

const wrongQpn: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const target = scene.target(node, qp);
  if (target === undefined) return undefined;
  const peer = scene.qp(target.node, qp.remoteQpn, atPs);
  const drop = scene.drops(target.node, ['packetUnknownQp'], (one) => one.destinationQpn === qp.remoteQpn);
  const count = drop?.count ?? 0;
  const startedPs = symptom.post?.atPs ?? qp.createdPs;
  const meant = scene.intended(node, qp);
  const isOwnAddress = target.node === node && meant !== undefined && meant.node !== node;
  if (peer === undefined)
    return {
      cause: isOwnAddress ? 'own-address' : 'wrong-qpn',
      sentence: isOwnAddress
        ? `${qpName(node, qp.qpn)} sends to the address of its own port, where no QP ${hex(qp.remoteQpn)} exists: the port dropped ${counted(count, 'packet')} (packetUnknownQp)`
        : `${qpName(node, qp.qpn)} sends to QP ${hex(qp.remoteQpn)}, which host ${target.node} does not have: its device dropped ${counted(count, 'packet')} (packetUnknownQp) and answered none`,
      evidence: { destQpn: qp.remoteQpn, packetUnknownQp: count, timeouts: qp.timeouts },
      mendLine: connectLine(symptom),
      advice: meantText(symptom),
    };
  if (
    peer.destroyedPs === undefined ||
    peer.destroyedPs > atPs ||
    (count === 0 && peer.destroyedPs > startedPs)
  )
    return undefined;
  return {
    cause: 'peer-qp-destroyed',
    sentence: `Host ${target.node} destroyed QP ${hex(peer.qpn)} at ${durationText(peer.destroyedPs)}, before ${qpName(node, qp.qpn)} had its answer: the device dropped ${counted(count, 'packet')} to it (packetUnknownQp)`,
    evidence: { destQpn: qp.remoteQpn, packetUnknownQp: count, destroyedPs: peer.destroyedPs },
    mendLine: scene.lines(target.node, 'QP', peer.qpn)?.destroyed,
    advice: 'Destroy the QP, or end the program, only after the other side has completed its requests.',
  };
};

const wrongService: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined || peer.of.service === qp.service) return undefined;
  const drop = scene.drops(peer.node, ['packetOpcode'], (one) => one.destinationQpn === peer.of.qpn);
  return {
    cause: 'wrong-service',
    sentence: `${qpName(node, qp.qpn)} is ${qp.service}, ${qpName(peer.node, peer.of.qpn)} is ${peer.of.service}: its device dropped ${counted(drop?.count ?? 0, 'packet')} of another service (packetOpcode)`,
    evidence: { packetOpcode: drop?.count ?? 0, timeouts: qp.timeouts },
    mendLine: connectLine(symptom),
    advice: meantText(symptom),
  };
};

const peerState: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs, post } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined) return undefined;
  const dropReasons = ['packetQpState', 'packetForeignGid'];
  const drop = scene.drops(peer.node, dropReasons, (one) => one.destinationQpn === peer.of.qpn);
  const state = stateAt(peer.of, atPs);
  if (!['RESET', 'INIT', 'ERR'].includes(state)) return undefined;
  const dropped = drop?.count ?? 0;
  const sinceText = (): string => {
    const entered = peer.of.states.findLast((change) => change.atPs <= atPs);
    return entered === undefined ? '' : ` since ${durationText(entered.atPs)}`;
  };
  if (state !== 'ERR')
    return {
      cause: 'peer-qp-state',
      sentence: `${qpName(peer.node, peer.of.qpn)} was in ${state}${sinceText()}, which receives nothing: its device dropped ${counted(dropped, 'packet')} of ${qpName(node, qp.qpn)} (${drop?.reason ?? 'packetQpState'})`,
      evidence: { state, packetQpState: dropped, timeouts: qp.timeouts },
      mendLine:
        scene.lines(peer.node, 'QP', peer.of.qpn)?.toInit ??
        scene.lines(peer.node, 'QP', peer.of.qpn)?.created,
      advice:
        'Bring the peer’s QP to RTR before the first request is posted here, e.g. exchange a message after both sides are ready.',
    };
  const { sendCqn, receiveCqn } = peer.of;
  for (const cqn of [receiveCqn, sendCqn]) {
    const overrun = overrunExplained(scene, peer.node, cqn);
    if (overrun !== undefined) return overrun;
  }
  const entered = peer.of.states.findLast((change) => change.state === 'ERR');
  const before = entered !== undefined && entered.atPs < (post?.atPs ?? 0);
  return {
    cause: 'peer-qp-error',
    sentence: `${qpName(peer.node, peer.of.qpn)} was in ERR${sinceText()}, ${entered?.by === 'software' ? 'where its program had put it' : 'after an error of its own'}: its device dropped ${counted(dropped, 'packet')} of ${qpName(node, qp.qpn)} (${drop?.reason ?? 'packetQpState'})`,
    evidence: {
      state,
      packetQpState: dropped,
      timeouts: qp.timeouts,
      wasBeforePost: before ? 1 : 0,
      isOwnError: entered?.by === 'software' ? 0 : 1,
    },
    mendLine: scene.lines(peer.node, 'QP', peer.of.qpn)?.toError,
    advice:
      entered?.by === 'software'
        ? 'The peer moved its QP to ERR while requests were under way: drain both sides first.'
        : 'Find out why the peer’s QP entered ERR: see its completions.',
  };
};

/** Bit of a P_Key. */
const FULL_MEMBER = 0x8000;

const pkey: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined) return undefined;
  const drop =
    scene.drops(peer.node, ['packetPkey'], (one) => one.destinationQpn === peer.of.qpn) ??
    scene.drops(node, ['packetPkey'], (one) => one.destinationQpn === qp.qpn);
  if (drop === undefined) return undefined;
  const areLimited =
    ((qp.pkey | peer.of.pkey) & FULL_MEMBER) === 0 && qp.pkey === peer.of.pkey && qp.pkey !== 0;
  return {
    cause: 'pkey',
    sentence: `${qpName(node, qp.qpn)} sends with P_Key ${hex(qp.pkey)} (index ${qp.pkeyIndex}), its peer has P_Key ${hex(peer.of.pkey)} (index ${peer.of.pkeyIndex}): ${areLimited ? `both are limited members of the partition, which do not reach each other, and ${counted(drop.count, 'packet')} were dropped` : `${counted(drop.count, 'packet')} of another partition were dropped`} (packetPkey)`,
    evidence: { pkey: qp.pkey, peerPkey: peer.of.pkey, packetPkey: drop.count },
    mendLine: scene.lines(node, 'QP', qp.qpn)?.toInit,
    advice:
      'Use pkey_index of the same partition at both ends; one of the two ends at least must be a full member (bit 15).',
  };
};

const roceVersion: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined || qp.path.roce === undefined || peer.of.path.roce === undefined) return undefined;
  if (peer.of.path.roce === qp.path.roce || peer.of.receivePsn < 0) return undefined;
  const drop = scene.drops(peer.node, ['packetForeignGid'], (one) => one.destinationQpn === peer.of.qpn);
  return {
    cause: 'roce-version',
    sentence: `${qpName(node, qp.qpn)} speaks RoCE ${qp.path.roce}, ${qpName(peer.node, peer.of.qpn)} speaks RoCE ${peer.of.path.roce}${drop === undefined ? '' : `: ${counted(drop.count, 'packet')} were dropped (packetForeignGid)`}`,
    evidence: { roce: qp.path.roce, peerRoce: peer.of.path.roce, packetForeignGid: drop?.count ?? 0 },
    mendLine: connectLine(symptom),
    advice: 'Use sgid_index of GIDs of the same type at both ends (ibv_query_gid_table, show_gids).',
  };
};

const foreignRoute: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined) return undefined;
  const there = scene.drops(peer.node, ['packetForeignGid'], (one) => one.destinationQpn === peer.of.qpn);
  const here = scene.drops(node, ['packetForeignGid'], (one) => one.destinationQpn === qp.qpn);
  const drop = there ?? here;
  if (drop === undefined) return undefined;
  const [at, victim] = there === undefined ? [node, qp] : [peer.node, peer.of];
  return {
    cause: 'wrong-gid-path',
    sentence: `${qpName(at, victim.qpn)} takes packets from ${victim.path.gid === undefined ? 'a path without GRH' : `GID ${victim.path.gid}`} only and dropped ${counted(drop.count, 'packet')} from another (packetForeignGid: found ${drop.found})`,
    evidence: { packetForeignGid: drop.count, found: drop.found, timeouts: qp.timeouts },
    mendLine: scene.lines(at, 'QP', victim.qpn)?.toRtr,
    advice:
      'Set dgid and is_global so that each end names the GID (sgid_index) that the other end sends from.',
  };
};

const elsewhere: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined || peer.of.service === 'UD' || stateAt(peer.of, atPs) === 'RESET') return undefined;
  const back = scene.target(peer.node, peer.of);
  if (peer.of.remoteQpn === qp.qpn && back?.node === node) return undefined;
  const isNumber = peer.of.remoteQpn !== qp.qpn;
  const line = scene.lines(peer.node, 'QP', peer.of.qpn)?.toRtr;
  const meant = scene.intended(node, qp);
  return {
    cause: isNumber ? 'peer-connected-elsewhere' : 'answers-misrouted',
    sentence: isNumber
      ? `${qpName(node, qp.qpn)} sends to ${qpName(peer.node, peer.of.qpn)}, which is connected to QP ${hex(peer.of.remoteQpn)} and answers that one`
      : `${qpName(peer.node, peer.of.qpn)} answers to ${peer.of.path.gid ?? `LID ${hex(peer.of.path.lid)}`}, which is not the port of host ${node}`,
    evidence: { destQpn: qp.remoteQpn, peerDestQpn: peer.of.remoteQpn, timeouts: qp.timeouts },
    mendLine: isNumber && meant !== undefined ? connectLine(symptom) : line,
    advice: isNumber ? meantText(symptom) : 'Set dlid or dgid of the peer to the address of this port.',
  };
};

/**
 * A QP that begins with another PSN than its peer expects. A responder that is a few packets ahead treats these as
 * duplicates, and refuses the next one, which then begins in the middle of a message.
 */
export const psnMismatch: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  if (peer === undefined || qp.sendPsn < 0 || peer.of.receivePsn < 0) return undefined;
  if (qp.sendPsn === peer.of.receivePsn) return undefined;
  const ahead = (qp.sendPsn - peer.of.receivePsn) & mask24;
  const isAhead = ahead < 0x80_0000;
  return {
    cause: 'psn',
    sentence: `${qpName(node, qp.qpn)} begins with PSN ${hex(qp.sendPsn)} (sq_psn), its peer expects ${hex(peer.of.receivePsn)} (rq_psn): ${isAhead ? `${counted(peer.of.outOfSequence, 'request')} were ahead of it and ${counted(qp.sequenceNaksReceived, 'NAK')} came back` : `${counted(peer.of.duplicates, 'request')} counted as duplicates and were not executed`}`,
    evidence: {
      sqPsn: qp.sendPsn,
      rqPsn: peer.of.receivePsn,
      outOfSequence: peer.of.outOfSequence,
      duplicates: peer.of.duplicates,
      sequenceNaks: qp.sequenceNaksReceived,
    },
    mendLine: scene.lines(node, 'QP', qp.qpn)?.toRts ?? connectLine(symptom),
    advice: 'Give one end as sq_psn what the other has as rq_psn.',
  };
};

const mtu: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, post } = symptom;
  const ports = [scene.device(node), scene.target(node, qp)].flatMap((device) => device ?? []);
  const port = ports.find((device) => qp.mtuBytes > device.port.mtuBytes);
  const bytes = post?.bytes ?? qp.underWay[0]?.bytes ?? 0;
  if (port === undefined || (bytes > 0 && bytes <= port.port.mtuBytes)) return undefined;
  return {
    cause: 'mtu-above-port',
    sentence: `${qpName(node, qp.qpn)} has a path MTU of ${qp.mtuBytes} bytes, the port of host ${port.node} carries ${port.port.mtuBytes}`,
    evidence: {
      pathMtu: qp.mtuBytes,
      portMtu: port.port.mtuBytes,
      unsentPackets: scene.device(node)?.unsentPackets ?? 0,
    },
    mendLine: connectLine(symptom),
    advice: 'Set path_mtu to at most active_mtu of both ports (ibv_query_port).',
  };
};

const slow: Rule<NoAnswer> = (symptom) => {
  const { scene, node, qp, atPs } = symptom;
  const peer = scene.peer(node, qp, atPs);
  const isLate = qp.lateAnswers > 0 || (peer?.of.duplicates ?? 0) > 0;
  if (qp.timeoutCode === 0 || !isLate || scene.packetFaults.some(({ fault }) => !/late/.test(fault)))
    return undefined;
  return {
    cause: 'responder-slow',
    sentence: `The answers to ${qpName(node, qp.qpn)} arrive later than its time-out of ${timeoutDurations(qp)}: ${counted(qp.timeouts, 'time-out')}, ${counted(peer?.of.duplicates ?? 0, 'duplicate')} at the peer, ${counted(qp.lateAnswers, 'answer')} that the requester no longer expected`,
    evidence: {
      timeoutPs: qp.timeoutPs,
      timeouts: qp.timeouts,
      duplicates: peer?.of.duplicates ?? 0,
      lateAnswers: qp.lateAnswers,
    },
    mendLine: scene.lines(node, 'QP', qp.qpn)?.toRts,
    advice:
      scene.device(node)?.lossRecovery === 'selective-repeat'
        ? 'Raise hca.retransmitLowUs and hca.retransmitHighUs above the longest time that the peer takes to answer.'
        : 'Raise timeout (4.096 µs × 2^timeout; 14 is 67 ms) above the longest time that the peer takes to answer.',
  };
};

const lost: Rule<NoAnswer> = ({ scene, node, qp }) => {
  const [fault] = scene.packetFaults;
  const far = scene.farDevice(node);
  const corrupted = (scene.device(node)?.corruptedPackets ?? 0) + (far?.corruptedPackets ?? 0);
  if (fault === undefined && corrupted === 0) return undefined;
  const { did, mend } = damagerOf(fault);
  return {
    cause: 'packets-lost',
    sentence: `${did} packets of ${qpName(node, qp.qpn)}: ${fault === undefined ? `${counted(corrupted, 'packet')} arrived with a wrong CRC` : `the injected fault ${fault.fault} fired ${counted(fault.fired, 'time')}`}, and ${qp.timeoutCode === 0 ? 'with timeout 0 nothing is sent again' : `${timeoutsText(qp)} used up retry_cnt ${qp.retryCount}`}`,
    evidence: { fired: fault?.fired ?? 0, corrupted, timeouts: qp.timeouts, retryCount: qp.retryCount },
    advice: `${mend}; until then raise ${qp.retryCount < 7 ? 'retry_cnt (7 at most) and timeout' : 'timeout'}.`,
  };
};

/** A wrong entry in a switch's forwarding table, by an injected fault. */
const misrouted: Rule<NoAnswer> = ({ scene, node, qp }) => {
  const fault = scene.faults.find(({ fault: text, fired }) => /forwarding/.test(text) && fired > 0);
  if (fault === undefined) return undefined;
  return {
    cause: 'forwarding-entry',
    sentence: `${qpName(node, qp.qpn)} got no answer: a forwarding entry of a switch was wrong by the injected fault ${fault.fault}, and ${timeoutsOrNone(qp)} used up retry_cnt ${qp.retryCount}`,
    evidence: { fired: fault.fired, timeouts: qp.timeouts, retryCount: qp.retryCount },
    advice: 'Mend the entry: switches count such packets as noRoute or ownPort, hosts as packetForeignLid.',
  };
};

const unknown: Rule<NoAnswer> = ({ scene, node, qp, atPs }) => {
  const peer = scene.peer(node, qp, atPs);
  const where =
    peer === undefined
      ? 'its peer is not of this machine'
      : `${qpName(peer.node, peer.of.qpn)} dropped none of its packets`;
  return {
    cause: 'no-answer',
    sentence: `${qpName(node, qp.qpn)} got no answer: ${timeoutsOrNone(qp)}, and ${where}`,
    evidence: { timeouts: qp.timeouts, retryCount: qp.retryCount },
    advice: 'Look at both ends of the cable (--pcap), and at the peer’s counters.',
  };
};

/** Rules in the order in which they are tried. */
export const noAnswerRules: readonly Rule<NoAnswer>[] = [
  linkDown,
  wrongAddress,
  wrongGid,
  wrongMac,
  wrongVlan,
  wrongQpn,
  wrongService,
  peerState,
  pkey,
  foreignRoute,
  roceVersion,
  elsewhere,
  psnMismatch,
  mtu,
  slow,
  lost,
  misrouted,
  unknown,
];

/** A peer without a receive, or without a page for one: RNR NAKs. */
export function notReady({ scene, node, qp, atPs }: NoAnswer): Explanation {
  const peer = scene.peer(node, qp, atPs);
  const naks = qp.rnrNaksReceived;
  const waited = `${counted(naks, 'RNR NAK')} made ${qpName(node, qp.qpn)} wait ${durationText(qp.rnrWaitPs)}`;
  const retries =
    qp.rnrRetryCount === 7
      ? 'rnr_retry 7 repeats it indefinitely'
      : `rnr_retry ${qp.rnrRetryCount} is used up`;
  const evidence = { rnrNaks: naks, rnrWaitPs: qp.rnrWaitPs, rnrRetry: qp.rnrRetryCount };
  if (peer !== undefined && peer.of.pageRnrNaks > peer.of.noReceive)
    return {
      cause: 'page-fault-rnr',
      sentence: `Pages of an on-demand region of host ${peer.node} were absent: ${waited}, and ${retries}`,
      evidence: { ...evidence, pageRequests: scene.device(peer.node)?.pageRequests ?? 0 },
      advice:
        'Raise rnr_retry (7 is without limit), or touch or prefetch the pages before the peer uses them.',
    };
  const posted = peer === undefined ? 0 : scene.receivesPosted(peer.node, peer.of);
  const taken = peer?.of.receivesTaken ?? 0;
  const isShared = peer !== undefined && peer.of.srqn !== -1;
  const where =
    peer === undefined
      ? 'The peer'
      : isShared
        ? `The shared receive queue of ${qpName(peer.node, peer.of.qpn)}`
        : qpName(peer.node, peer.of.qpn);
  const isLate = posted > taken;
  const refused =
    peer &&
    scene
      .host(peer.node)
      ?.refusedCalls.find(
        ({ call, qpn }) =>
          call.startsWith('ibv_post') && call.endsWith('recv') && (qpn === peer.of.qpn || qpn < 0),
      );
  const refusedText =
    refused === undefined
      ? ''
      : ` (${refused.call} had returned ${refused.errno} ${counted(refused.count, 'time')})`;
  return {
    cause: isLate ? 'receive-late' : isShared ? 'srq-empty' : 'no-receive',
    sentence: `${where} had no receive for the message${isLate ? ` until it was too late` : posted === 0 ? ', none was ever posted' : `, all ${posted} posted ones were used`}${refusedText}: ${waited}, and ${retries}`,
    evidence: { ...evidence, receivesPosted: posted, receivesTaken: taken },
    mendLine: peer && scene.receiveLine(peer.node, peer.of),
    advice:
      'Post receives before the peer sends, and as many as messages may be under way; post the next one as soon as one completes.',
  };
}
