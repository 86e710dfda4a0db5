/** Notes: events that cost time, or lost a message that no program waits for. They are not faults but often explain slowness. */
import { mask24 } from '../../base/index.ts';
import type { CqEvidence, DeviceEvidence, PostEvidence, QpEvidence } from '../../machine/evidence/index.ts';
import { counted, durationText, type Explanation, hex, qpName, vlanText } from './cause.ts';
import type { Scene } from './scene.ts';
import { timeoutsText } from './time-outs.ts';
import { datagramsLost, refusedInSilence, servicesLost } from './unreliable.ts';

/** Number of page requests from which on they are noted. */
const pageStormMin = 16;

/** All records of a device. */
export function notesOf(scene: Scene, device: DeviceEvidence): Explanation[] {
  return [
    ...device.qps.flatMap((qp) => [
      ...notReady(scene, device.node, qp),
      ...repeated(scene, device.node, qp),
      ...versions(scene, device.node, qp),
      ...vlans(scene, device.node, qp),
    ]),
    ...pages(device),
    ...unfenced(scene, device.node),
    ...(scene.host(device.node) === undefined
      ? [
          ...device.cqs.flatMap((cq) => left(device.node, cq)),
          ...device.qps.flatMap((qp) => unsignalled(device.node, qp)),
        ]
      : []),
    ...[datagramsLost, servicesLost, refusedInSilence].flatMap(
      (lost) => lost(scene, device.node, device.qps) ?? [],
    ),
  ];
}

function notReady(scene: Scene, node: number, qp: QpEvidence): Explanation[] {
  if (qp.rnrNaksReceived === 0) return [];
  const peer = scene.peer(node, qp);
  const isPage = peer !== undefined && peer.of.pageRnrNaks > peer.of.noReceive;
  const why = isPage ? 'pages of an on-demand region were absent' : 'its peer had no receive posted';
  const isLongest = !isPage && peer?.of.rnrTimerCode === 0;
  return [
    {
      cause: isPage ? 'page-fault-rnr' : 'rnr-wait',
      sentence: `${qpName(node, qp.qpn)} waited ${durationText(qp.rnrWaitPs)} in ${counted(qp.rnrNaksReceived, 'RNR NAK')}: ${why}, and the requests were repeated until there was one${isLongest ? '; its min_rnr_timer 0 is the longest wait, 655.36 ms' : ''}`,
      evidence: {
        rnrNaks: qp.rnrNaksReceived,
        rnrWaitPs: qp.rnrWaitPs,
        rnrTimerCode: peer?.of.rnrTimerCode ?? 0,
      },
      advice: isPage
        ? 'Touch or prefetch the pages before the peer uses them.'
        : isLongest
          ? 'Post receives earlier, and set min_rnr_timer at the peer: 1 is 0.01 ms, 12 is 0.64 ms, 0 is the longest.'
          : 'Post receives earlier, and more of them; a smaller min_rnr_timer makes each wait shorter.',
      key: `rnr ${node} ${qp.qpn}`,
    },
  ];
}

function repeated(scene: Scene, node: number, qp: QpEvidence): Explanation[] {
  const { timeouts, sequenceNaksReceived: naks, missingResponses: missing } = qp;
  if (timeouts + naks + missing === 0) return [];
  const [fault] = scene.packetFaults;
  return [
    {
      cause: 'retransmissions',
      sentence: `${qpName(node, qp.qpn)} sent packets again after ${timeoutsText(qp)}, ${counted(naks, 'NAK')} for a sequence error and ${counted(missing, 'missing response')}${fault === undefined ? '' : ` (injected: ${fault.fault})`}`,
      evidence: { timeouts, sequenceNaks: naks, missingResponses: missing, timeoutPs: qp.timeoutPs },
      advice:
        scene.device(node)?.lossRecovery === 'selective-repeat'
          ? 'Packets were lost or late: check the cable (--pcap), and hca.retransmitLowUs and hca.retransmitHighUs: the loss of a last packet costs one of them.'
          : 'Packets were lost or late: look at the cable (--pcap), and at timeout, which is what each loss of a last packet costs.',
      key: `again ${node} ${qp.qpn}`,
    },
  ];
}

/**
 * A request that sends bytes which an earlier READ or atomic of the same QP may still write: only a fence, of the
 * request itself or of one between the two, waits for these.
 */
function unfenced(scene: Scene, node: number): Explanation[] {
  const posts = scene.host(node)?.posts ?? [];
  const open = new Map<number, PostEvidence[]>();
  for (const post of posts) {
    const beganPs = generationBeganPs(scene, node, post);
    const pending = (open.get(post.qpn) ?? []).filter(
      ({ atPs, completedPs }) => atPs >= beganPs && (completedPs === undefined || completedPs > post.atPs),
    );
    const before = post.isFenced ? [] : pending;
    open.set(post.qpn, before);
    if (/READ|SWAP|ADD/.test(post.operation)) before.push(post);
    else {
      // A fence comes too late for inline data, which were copied when the request was posted.
      const source = (post.isInline ? pending : before).find((one) => overlap(one, post));
      if (source !== undefined) return [fenceMissing(node, source, post)];
    }
  }
  return [];
}

/** When a QP was created or last reset before a request was posted: requests of an earlier life are gone. */
const generationBeganPs = (scene: Scene, node: number, { qpn, atPs }: PostEvidence): number => {
  const qp = scene.qp(node, qpn, atPs);
  const reset = qp?.states.findLast((change) => change.state === 'RESET' && change.atPs <= atPs);
  return Math.max(qp?.createdPs ?? 0, reset?.atPs ?? 0);
};

/** Whether two requests share a byte. */
const overlap = (one: PostEvidence, other: PostEvidence): boolean =>
  one.buffers.some((left) =>
    other.buffers.some(
      (right) =>
        Math.max(left.address, right.address) <
        Math.min(left.address + left.bytes, right.address + right.bytes),
    ),
  );

const fenceMissing = (node: number, source: PostEvidence, post: PostEvidence): Explanation => ({
  cause: 'fence-missing',
  weight: 'fault',
  sentence: `The ${post.operation} on ${qpName(node, post.qpn)} sends the buffer of a ${source.operation} that was not completed when it was posted, ${post.isInline ? 'and inline data are copied then' : 'without IBV_SEND_FENCE'}: it may send what the buffer had before`,
  evidence: { address: post.buffers[0]?.address ?? 0, bytes: post.bytes },
  mendLine: post.line,
  advice: `${post.isInline ? 'Post it' : 'Set IBV_SEND_FENCE in the request, or post it'} after the completion of the ${source.operation}.`,
  key: `fence ${node} ${post.qpn}`,
});

/** Two versions of RoCE on one connection: this card accepts both, other cards drop packets of a version other than the QP's. */
function versions(scene: Scene, node: number, qp: QpEvidence): Explanation[] {
  if (qp.service === 'UD' || qp.service === 'MLX') return [];
  const peer = qp.sendPsn < 0 ? undefined : scene.peer(node, qp);
  const [own, other] = [qp.path.roce, peer?.of.path.roce];
  if (peer === undefined && qp.sendPsn >= 0 && scene.target(node, qp) === undefined)
    return strangersVersion(node, qp);
  if (peer === undefined || own === undefined || other === undefined || own === other) return [];
  if (peer.of.receivePsn < 0 || peer.of.remoteQpn !== qp.qpn) return [];
  return [
    {
      cause: 'roce-version',
      weight: 'fault',
      sentence: `${qpName(node, qp.qpn)} speaks RoCE ${own}, ${qpName(peer.node, peer.of.qpn)} speaks RoCE ${other}: packets of one version do not reach a QP of the other; this device takes both, and hides the mistake`,
      evidence: { roce: own, peerRoce: other },
      advice: 'Use sgid_index of GIDs of the same type at both ends (ibv_query_gid_table, show_gids).',
      key: `version ${[`${node} ${qp.qpn}`, `${peer.node} ${peer.of.qpn}`].toSorted().join()}`,
    },
  ];
}

/** Two VLANs on one connection: this cable and device carry the packets, a switch keeps VLANs apart. */
function vlans(scene: Scene, node: number, qp: QpEvidence): Explanation[] {
  if (qp.service === 'UD' || qp.service === 'MLX' || qp.path.roce === undefined || qp.sendPsn < 0) return [];
  const peer = scene.peer(node, qp);
  if (peer === undefined || peer.of.receivePsn < 0 || peer.of.remoteQpn !== qp.qpn) return [];
  const [own, other] = [qp.path.vlan, peer.of.path.vlan];
  if (own === other) return [];
  return [
    {
      cause: 'wrong-vlan',
      weight: 'fault',
      sentence: `${qpName(node, qp.qpn)} sends with ${vlanText(own)}, its peer expects ${vlanText(other)}: a switch keeps VLANs apart, this cable does not`,
      evidence: { vlan: own ?? -1, peerVlan: other ?? -1 },
      advice: 'Use GIDs of the same VLAN at both ends.',
      key: `vlan ${[`${node} ${qp.qpn}`, `${peer.node} ${peer.of.qpn}`].toSorted().join()}`,
    },
  ];
}

/** A peer outside this machine: its version is known from its packets only. */
function strangersVersion(node: number, qp: QpEvidence): Explanation[] {
  const { roce } = qp.path;
  const [own, other] = roce === 'v1' ? [qp.packetsV1, qp.packetsV2] : [qp.packetsV2, qp.packetsV1];
  if (roce === undefined || own > 0 || other === 0) return [];
  return [
    {
      cause: 'roce-version',
      weight: 'fault',
      sentence: `${qpName(node, qp.qpn)} speaks RoCE ${roce}, and ${counted(other, 'packet')} of RoCE ${roce === 'v1' ? 'v2' : 'v1'} and none of its own version came to it: its peer speaks the other version, and does not take its packets`,
      evidence: { roce, packetsV1: qp.packetsV1, packetsV2: qp.packetsV2 },
      advice: 'Use sgid_index of GIDs of the same type at both ends (ibv_query_gid_table, show_gids).',
      key: `version ${node} ${qp.qpn}`,
    },
  ];
}

/**
 * Completions of a guest in an armed CQ. An armed CQ raises its event with the next completion. These completions were
 * therefore present, and reported, before; or their messages solicit no event.
 */
function left(node: number, { cqn, armed, producer, consumer, arms, events }: CqEvidence): Explanation[] {
  const count = (producer - consumer) & mask24;
  if (armed === 'not' || count === 0 || count > 0x40_0000) return [];
  const isSolicited = armed === 'solicited';
  return [
    {
      cause: isSolicited ? 'event-solicited-only' : 'left-in-armed-cq',
      sentence: isSolicited
        ? `CQ ${hex(cqn)} of host ${node} is armed for solicited completions only, and ${counted(count, 'completion')} came of messages that solicit none`
        : `CQ ${hex(cqn)} of host ${node} is armed with ${counted(count, 'completion')} left in it, which an event has reported before: no new event comes for them`,
      evidence: { cqn, left: count, arms, events },
      advice: isSolicited
        ? 'Set IBV_SEND_SOLICITED in the sender’s requests, or call ibv_req_notify_cq with 0.'
        : 'After ibv_req_notify_cq poll until the CQ is empty, and only then wait for the next event.',
    },
  ];
}

/** Bytes of the send queue that the driver keeps free because the device reads ahead, plus one slot (libmlx4, sq_spare_wqes). */
const readAheadBytes = 2048;

/** A guest's library refuses the next request (ENOMEM) unseen by the device, but the device sees that no completion was requested. */
function unsignalled(node: number, qp: QpEvidence): Explanation[] {
  const { silent, signalled, failed, sendSlots, sendSlotBytes } = qp;
  const capacity = sendSlots - readAheadBytes / sendSlotBytes - 1;
  if (sendSlots === 0 || signalled + failed > 0 || silent === 0 || silent < capacity) return [];
  return [
    {
      cause: 'send-queue-unsignalled',
      sentence: `All ${silent} requests of ${qpName(node, qp.qpn)} were unsignalled, and its send queue has room for ${capacity}: none has a completion, and only a polled completion frees places, so that ibv_post_send returns ENOMEM from there on`,
      evidence: { silent, signalled, capacity },
      advice: `Signal every n-th request (IBV_SEND_SIGNALED), at least one in ${capacity}, and poll its completion.`,
    },
  ];
}

function pages({ node, pageRequests, pageWaitPs }: DeviceEvidence): Explanation[] {
  if (pageRequests < pageStormMin) return [];
  return [
    {
      cause: 'page-fault-storm',
      sentence: `The device of host ${node} asked for ${pageRequests} pages of on-demand regions and waited ${durationText(pageWaitPs)} for them, ${durationText(pageWaitPs / pageRequests)} each`,
      evidence: { pageRequests, pageWaitPs },
      advice:
        'Touch the pages before they are used, pin the memory (no IBV_ACCESS_ON_DEMAND), or reuse buffers.',
    },
  ];
}
