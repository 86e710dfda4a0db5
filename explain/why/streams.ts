/**
 * Streams of iWARP that ended: by a Terminate of either side, by a reset, or since TCP got no answer. The side whose
 * card found the error has the reason; the request is the peer's. A WRITE or SEND completes when TCP has it, so that a
 * refused one may leave no failed completion: the stream itself is the symptom.
 */
import { CqeSyndrome } from '../../abi/index.ts';
import type {
  AccessEvidence,
  PostEvidence,
  QpEvidence,
  StreamErrorEvidence,
  StreamEvidence,
} from '../../machine/evidence/index.ts';
import {
  answerBadKey,
  answerBadPd,
  answerMissingRight,
  answerOutOfBounds,
} from '../../machine/timeline/index.ts';
import { IwarpError } from '../../protocol/iwarp/index.ts';
import { accessExplained } from './access.ts';
import { counted, durationText, type Explanation, explained, hex, qpName, type Rule } from './cause.ts';
import type { OnNode, Scene } from './scene.ts';
import { terminateText } from './stream-words.ts';

/** A stream that ended, or gets no answer. */
interface StreamSymptom {
  readonly scene: Scene;
  readonly node: number;
  readonly stream: StreamEvidence;
  readonly far: OnNode<StreamEvidence> | undefined;
}

/** A finding about a stream, and the line that posted the request if that is known. */
export interface StreamFinding {
  /** The affected host: that of the request. */
  readonly node: number;
  readonly explanation: Explanation;
  readonly line?: string | undefined;
}

const streamKey = ({ localAddress, localPort, remoteAddress, remotePort, openedPs }: StreamEvidence) =>
  `stream ${[`${localAddress} ${localPort}`, `${remoteAddress} ${remotePort}`].toSorted().join()} ${openedPs}`;

/** One key for both ends: that of the end that opened the connection. */
const keyOf = ({ stream, far }: StreamSymptom): string =>
  streamKey(stream.isActive || far === undefined ? stream : far.of);

/** Answers of a translation by the errors of RFC 5040 and 5041 that report them. */
const answersByError: ReadonlyMap<number, number> = new Map<number, number>([
  [IwarpError.PROTECTION_STAG_INVALID, answerBadKey],
  [IwarpError.TAGGED_STAG_INVALID, answerBadKey],
  [IwarpError.PROTECTION_STAG_OF_OTHER_STREAM, answerBadPd],
  [IwarpError.TAGGED_STAG_OF_OTHER_STREAM, answerBadPd],
  [IwarpError.PROTECTION_BOUNDS, answerOutOfBounds],
  [IwarpError.TAGGED_BOUNDS, answerOutOfBounds],
  [IwarpError.PROTECTION_ACCESS_RIGHTS, answerMissingRight],
]);

const operations: Readonly<Record<string, RegExp>> = {
  WRITE: /^WRITE/,
  READ_REQUEST: /^READ/,
};

/** The access that the card refused for this error, if it noted one. */
function accessOf(
  { scene, node, stream }: StreamSymptom,
  { error, atPs }: StreamErrorEvidence,
): AccessEvidence | undefined {
  const last = scene
    .device(node)
    ?.accesses.findLast((access) => access.qpn === stream.qpn && access.atPs <= atPs);
  return last?.answer === answersByError.get(error) ? last : undefined;
}

/** The post of the peer that names a refused access. */
function postOf(
  { scene, far }: StreamSymptom,
  operation: RegExp,
  { key, address, atPs }: AccessEvidence,
): PostEvidence | undefined {
  const isMeant = (post: PostEvidence): boolean =>
    post.qpn === far!.of.qpn &&
    post.atPs <= atPs &&
    operation.test(post.operation) &&
    post.remoteKey === key &&
    address >= post.remoteAddress! &&
    address < post.remoteAddress! + Math.max(1, post.bytes);
  return far && scene.host(far.node)?.posts.find(isMeant);
}

/** A WRITE or READ of the peer to memory that this side does not allow. */
const remoteAccess: Rule<StreamSymptom> = (symptom) => {
  const { scene, node, stream, far } = symptom;
  const error = stream.ownError;
  const operation = operations[error?.message ?? ''];
  if (error === undefined || operation === undefined || far === undefined) return undefined;
  const access = accessOf(symptom, error);
  if (access === undefined) return undefined;
  const name = error.message === 'WRITE' ? 'WRITE' : 'READ';
  const what = `The ${name} of ${qpName(far.node, far.of.qpn)}`;
  const explanation = accessExplained({ scene, node, access, what, askingNode: far.node, side: 'remote' });
  return withTerminate(explanation, node, error.error);
};

/** Adds the Terminate by which a card ended a connection. */
export const withTerminate = (explanation: Explanation, node: number, error: number): Explanation => ({
  ...explanation,
  sentence: `${explanation.sentence}; the card of host ${node} ended the connection by Terminate ${terminateText(error)}`,
  evidence: { ...explanation.evidence, terminate: error },
});

/** The sink of an own READ. */
const readSink: Rule<StreamSymptom> = (symptom) => {
  const { scene, node, stream } = symptom;
  const error = stream.ownError;
  if (error?.message !== 'READ_RESPONSE') return undefined;
  const access = accessOf(symptom, error);
  if (access === undefined) return undefined;
  const what = `The READ of ${qpName(node, stream.qpn)}`;
  const explanation = accessExplained({ scene, node, access, what, askingNode: node, side: 'local' });
  if (access.answer !== answerMissingRight) return withTerminate(explanation, node, error.error);
  return withTerminate(
    {
      ...explanation,
      cause: 'read-sink-right-missing',
      sentence: `${explanation.sentence}; over iWARP the sink of a READ needs remote write (RFC 5040, 5.4), and the request completes with LOC_PROT_ERR`,
    },
    node,
    error.error,
  );
};

const noBuffer: Rule<StreamSymptom> = ({ scene, node, stream, far }) => {
  if (stream.ownError?.error !== IwarpError.UNTAGGED_NO_BUFFER || far === undefined) return undefined;
  const qp = scene.qp(node, stream.qpn, stream.ownError.atPs);
  if (qp === undefined) return undefined;
  const posted = scene.receivesPosted(node, qp);
  const isShared = qp.srqn !== -1;
  const where = isShared ? `The shared receive queue of ${qpName(node, qp.qpn)}` : qpName(node, qp.qpn);
  return withTerminate(
    {
      cause: isShared ? 'srq-empty' : 'no-receive',
      sentence: `${where} had no receive for a message of ${qpName(far.node, far.of.qpn)}${posted === 0 ? ', none was ever posted' : ` at ${durationText(stream.ownError.atPs)}, after ${counted(qp.receivesTaken, 'receive')} of ${posted}`}: iWARP has no RNR NAK that would repeat it`,
      evidence: { receivesPosted: posted, receivesTaken: qp.receivesTaken },
      mendLine: scene.receiveLine(node, qp),
      advice:
        'Post receives before the peer sends, and as many as messages may be under way; post the next one as soon as one completes.',
    },
    node,
    stream.ownError.error,
  );
};

/** The last resort for a Terminate: its words are all that is known. */
const otherTerminate: Rule<StreamSymptom> = ({ node, stream }) => {
  const { ownError, peerError } = stream;
  const error = ownError ?? peerError;
  if (error === undefined) return undefined;
  const whose = ownError === undefined ? 'its peer' : `the card of host ${node}`;
  const message = error.message === undefined ? '' : ` on a ${error.message}`;
  return {
    cause: 'terminated',
    sentence: `The connection of ${qpName(node, stream.qpn)} ended at ${durationText(error.atPs)} by a Terminate of ${whose}${message}, ${terminateText(error.error)}; no further cause is known over iWARP`,
    evidence: { terminate: error.error },
    advice: 'Look at the messages before it (--pcap), and at the rights, keys and receives of the peer.',
  };
};

/** When a port went down, if it was down at an instant. */
function downSince(scene: Scene, node: number, atPs: number): number | undefined {
  const port = scene.device(node)?.port;
  const downPs = port?.downPs.findLast((wentPs) => wentPs <= atPs);
  const isUpAgain = port?.upPs.some((upPs) => upPs > (downPs ?? 0) && upPs <= atPs);
  return isUpAgain === true ? undefined : downPs;
}

/** How often TCP has sent its oldest segment again; the last expiry of the timer ended a connection that timed out. */
export const sentAgain = ({ tries, end }: StreamEvidence): number => (end === 'timedOut' ? tries - 1 : tries);

/** TCP gets no acknowledgement: it gave up, or still tries when the run ends. */
const noAnswer: Rule<StreamSymptom> = ({ scene, node, stream, far }) => {
  const isOver = stream.end === 'timedOut';
  if (!isOver && (stream.end !== undefined || stream.tries === 0)) return undefined;
  const name =
    stream.qpn === 0 ? `A connection of host ${node}` : `The connection of ${qpName(node, stream.qpn)}`;
  const what = stream.establishedPs === undefined ? 'its SYN' : 'its oldest segment';
  const atPs = stream.endedPs ?? scene.device(node)?.atPs ?? 0;
  const ends = [node, ...(far === undefined ? scene.peers(node) : [far.node])];
  const down = ends.find((end) => downSince(scene, end, atPs) !== undefined);
  const [fault] = scene.packetFaults;
  const how = isOver
    ? `ended with a time-out at ${durationText(atPs)}: TCP sent ${what} again ${counted(sentAgain(stream), 'time')} without an acknowledgement`
    : `gets no acknowledgement: TCP has sent ${what} again ${counted(sentAgain(stream), 'time')} since the last one, and still tries`;
  const reason =
    down === undefined
      ? ''
      : `; the port of host ${down} went down at ${durationText(downSince(scene, down, atPs)!)}`;
  return {
    cause: down === undefined ? (isOver ? 'tcp-lost' : 'tcp-no-answer') : 'link-down',
    sentence: `${name} ${how}${reason}${fault === undefined ? '' : ` (injected: ${fault.fault})`}`,
    evidence: { tries: stream.tries, timeouts: stream.timeouts, retransmissions: stream.retransmissions },
    advice: 'Look at the cable, the ports and the peer: frames are lost, or nothing answers (--pcap).',
  };
};

/** Whether a request of this side was flushed, or has no completion. */
const hasLost = (symptom: StreamSymptom): boolean =>
  symptom.scene
    .device(symptom.node)
    ?.errors.some(({ qpn, isSend }) => isSend && qpn === symptom.stream.qpn) === true ||
  firstFailed(symptom) !== undefined;

/** A RST of the peer ended the stream of a QP. */
const reset: Rule<StreamSymptom> = (symptom) => {
  const { scene, node, stream, far } = symptom;
  if (stream.end !== 'reset' || stream.hasAborted || stream.qpn === 0) return undefined;
  const name = `The connection of ${qpName(node, stream.qpn)} was reset (RST) at ${durationText(stream.endedPs!)}`;
  const peer = far && scene.qp(far.node, far.of.qpn, stream.endedPs);
  const evidence = { endedPs: stream.endedPs! };
  if (far !== undefined && peer?.destroyedPs !== undefined && peer.destroyedPs <= stream.endedPs!)
    return {
      cause: 'peer-qp-destroyed',
      // A program that ends destroys its QPs: without a request of this side nothing is lost.
      ...(hasLost(symptom) ? {} : { weight: 'note' as const }),
      sentence: `${name}: its peer, ${qpName(far.node, peer.qpn)}, was destroyed at ${durationText(peer.destroyedPs)}`,
      evidence: { ...evidence, destroyedPs: peer.destroyedPs },
      mendLine: scene.lines(far.node, 'QP', peer.qpn)?.destroyed,
      advice: 'Call rdma_disconnect and take DISCONNECTED at both ends before the QP is destroyed.',
    };
  const erred = peer?.states.findLast(({ state, atPs }) => state === 'ERR' && atPs <= stream.endedPs!);
  if (far !== undefined && peer !== undefined && erred?.by === 'software')
    return {
      cause: 'peer-qp-error',
      sentence: `${name}: the program of host ${far.node} put its QP ${hex(peer.qpn)} into ERR at ${durationText(erred.atPs)}`,
      evidence: { ...evidence, erredPs: erred.atPs },
      mendLine: scene.lines(far.node, 'QP', peer.qpn)?.toError,
      advice: 'Call rdma_disconnect instead: messages sent before it still arrive.',
    };
  return {
    cause: 'connection-reset',
    sentence: `${name}; no further cause is known over iWARP`,
    evidence,
    advice: 'Look at the peer: what it did to its QP and to the connection, and the last frames (--pcap).',
  };
};

const rules: readonly Rule<StreamSymptom>[] = [
  remoteAccess,
  readSink,
  noBuffer,
  otherTerminate,
  noAnswer,
  reset,
];

/** Whether a completion with an error of this QP, or an overrun of its CQs, explains the end of its stream. */
function hasFailedAlone(scene: Scene, node: number, qp: QpEvidence | undefined): boolean {
  if (qp === undefined) return false;
  const isBroken = [qp.sendCqn, qp.receiveCqn].some((cqn) => (scene.cq(node, cqn)?.status ?? 'ok') !== 'ok');
  const isFailure = ({ qpn, syndrome, atPs }: { qpn: number; syndrome: number; atPs: number }): boolean =>
    qpn === qp.qpn && syndrome !== CqeSyndrome.WR_FLUSH_ERR && atPs >= qp.createdPs;
  return isBroken || scene.device(node)?.errors.some(isFailure) === true;
}

/** The side whose evidence explains the end: the one that found the error. */
const isObserver = ({ stream, far }: StreamSymptom): boolean =>
  stream.peerError === undefined || far?.of.ownError === undefined;

/**
 * Streams that ended by an error, of all devices.
 * @param isStuck programs wait: a connection without an acknowledgement is a reason
 */
export function streamFindings(scene: Scene, isStuck: boolean): StreamFinding[] {
  return scene.devices.flatMap(({ node, streams }) =>
    streams.flatMap((stream) => {
      const symptom = { scene, node, stream, far: scene.farStream(stream) };
      if (
        !isObserver(symptom) ||
        (stream.end === undefined &&
          !isStuck &&
          stream.ownError === undefined &&
          stream.peerError === undefined)
      )
        return [];
      return findingOf(symptom) ?? [];
    }),
  );
}

function findingOf(symptom: StreamSymptom): StreamFinding | undefined {
  const { scene, node, stream, far } = symptom;
  const isSink = stream.ownError?.message === 'READ_RESPONSE';
  const isOwn = hasFailedAlone(scene, node, scene.qp(node, stream.qpn, stream.endedPs));
  const isFars = far !== undefined && hasFailedAlone(scene, far.node, scene.qp(far.node, far.of.qpn));
  // A failed completion of either side has a finding of its own.
  if (!isSink && stream.qpn !== 0 && (isOwn || isFars)) return undefined;
  const explanation = explained(rules, symptom);
  if (explanation === undefined) return undefined;
  const key = keyOf(symptom);
  const access = stream.ownError && accessOf(symptom, stream.ownError);
  const operation = operations[stream.ownError?.message ?? ''];
  if (isSink) return { node, explanation: { ...explanation, key }, line: sinkLine(symptom) };
  const isOfPeer = stream.ownError !== undefined && far !== undefined;
  const post =
    access && operation
      ? postOf(symptom, operation, access)
      : isOfPeer
        ? sendOf(symptom)
        : firstFailed(symptom);
  return { node: isOfPeer ? far.node : node, explanation: { ...explanation, key }, line: post?.line };
}

/** The SEND of the peer that found no receive: those before it took one each. */
function sendOf({ scene, node, stream, far }: StreamSymptom): PostEvidence | undefined {
  const qp = scene.qp(node, stream.qpn, stream.endedPs);
  const isNoBuffer = stream.ownError?.error === IwarpError.UNTAGGED_NO_BUFFER;
  if (!isNoBuffer || qp === undefined || qp.srqn !== -1 || far === undefined) return undefined;
  const posts = scene.host(far.node)?.posts.filter(({ qpn }) => qpn === far.of.qpn) ?? [];
  // The journal of a long run keeps the last posts only.
  if (posts[0]?.wqeCounter !== 0) return undefined;
  return posts.filter(({ operation }) => operation.startsWith('SEND'))[qp.receivesTaken];
}

/** The first request that the end of the stream flushed, or that still waits. */
function firstFailed({ scene, node, stream }: StreamSymptom): PostEvidence | undefined {
  const failed = scene.device(node)?.errors.find(({ qpn, isSend }) => qpn === stream.qpn && isSend);
  if (failed !== undefined) return scene.post(node, stream.qpn, failed.wqeCounter);
  const isOpen = (post: PostEvidence): boolean =>
    post.qpn === stream.qpn && post.isSignalled && !post.isCompleted && post.atPs >= stream.openedPs;
  return stream.end === undefined ? scene.host(node)?.posts.find(isOpen) : undefined;
}

/** The READ that failed with its sink. */
function sinkLine({ scene, node, stream }: StreamSymptom): string | undefined {
  const failed = scene
    .device(node)
    ?.errors.find(
      ({ qpn, syndrome, isSend }) => qpn === stream.qpn && isSend && syndrome === CqeSyndrome.LOCAL_PROT_ERR,
    );
  return failed && scene.post(node, stream.qpn, failed.wqeCounter)?.line;
}

const streamsOf = (scene: Scene, node: number): StreamEvidence[] =>
  (scene.device(node)?.streams ?? []).filter(({ qpn }) => qpn !== 0);

/** The first rdma_disconnect of either end; a call does not name its connection, so that there must be one alone. */
function disconnectOf(scene: Scene, node: number, stream: StreamEvidence) {
  const far = scene.farStream(stream);
  const nodes = [...(stream.peerClosedPs === undefined || far === undefined ? [] : [far.node]), node];
  if (nodes.some((one) => streamsOf(scene, one).length > 1)) return undefined;
  const calls = nodes.flatMap((one) =>
    (scene.host(one)?.connectionCalls ?? []).flatMap((call) =>
      call.call === 'rdma_disconnect' && call.atPs >= stream.openedPs ? [{ ...call, node: one }] : [],
    ),
  );
  return calls.toSorted((left, right) => left.atPs - right.atPs)[0];
}

/** The stream was closed by FINs, and no call is known that did it. */
function closed(node: number, stream: StreamEvidence, isSend: boolean): Explanation | undefined {
  const atPs = stream.peerClosedPs ?? (stream.end === 'closed' ? stream.endedPs : undefined);
  if (atPs === undefined) return undefined;
  return {
    cause: 'peer-disconnected',
    weight: isSend ? 'fault' : 'note',
    sentence: `The connection of ${qpName(node, stream.qpn)} was closed (FIN) at ${durationText(atPs)}: ${isSend ? 'requests' : 'receives'} that were under way or posted later complete as flushed`,
    evidence: { closedPs: atPs },
    advice:
      'Complete all requests before either side ends the connection (rdma_disconnect, rdma_destroy_id).',
    key: `disconnected ${node} ${stream.qpn} ${isSend}`,
  };
}

/** A flushed request or receive of a QP whose stream has ended; undefined if the end has a finding of its own. */
export function flushedWithStream(
  scene: Scene,
  node: number,
  { stream, isSend }: { readonly stream: StreamEvidence; readonly isSend: boolean },
): Explanation | undefined {
  const { ownError, peerError, end } = stream;
  if (ownError !== undefined || peerError !== undefined || end === 'timedOut') return undefined;
  if (end === 'reset' && !stream.hasAborted) return undefined;
  const first = disconnectOf(scene, node, stream);
  if (first === undefined) return closed(node, stream, isSend);
  const isOwn = first.node === node;
  return {
    cause: isOwn ? 'flushed-by-program' : 'peer-disconnected',
    // Receives that are posted at the end of a connection are usual.
    weight: isSend && !isOwn ? 'fault' : 'note',
    sentence: `The program of host ${first.node} ended the connection of ${qpName(node, stream.qpn)} by rdma_disconnect at ${durationText(first.atPs)}: ${isSend ? 'requests' : 'receives'} that were under way or posted later complete as flushed`,
    evidence: { disconnectedPs: first.atPs },
    mendLine: first.line,
    advice: isSend
      ? 'Complete all requests before either side calls rdma_disconnect, and take DISCONNECTED before posting more.'
      : 'Nothing is wrong: poll the flushed receives, or destroy the QP.',
    key: `disconnected ${node} ${stream.qpn} ${isSend}`,
  };
}

/** A request that has not completed on a stream that is open and gets acknowledgements. @param subject the waiting program, in words */
export function stalledStream(
  scene: Scene,
  node: number,
  qp: QpEvidence,
  subject: string,
): Explanation | undefined {
  const stream = scene.stream(node, qp.qpn);
  const isOpen =
    stream?.end === undefined && stream?.ownError === undefined && stream?.peerError === undefined;
  if (stream === undefined || !isOpen || stream.tries > 0) return undefined;
  const name = qpName(node, qp.qpn);
  if (qp.parkedFor === 'readLimit' && stream.outboundReads === 0)
    return {
      cause: 'no-outbound-reads',
      sentence: `${subject}, but the connection of ${name} was agreed with an ORD of 0: its READs and atomics, and all requests after them, are never sent`,
      evidence: { outboundReads: 0, parkedFor: qp.parkedFor },
      advice:
        'Set initiator_depth in rdma_conn_param of rdma_connect and rdma_accept, and responder_resources at the peer.',
    };
  const gone = peerGone(scene, stream);
  if (gone !== undefined) return { ...gone, sentence: `${subject}, but ${gone.sentence}` };
  return {
    cause: 'stream-stalled',
    sentence: `${subject}, and ${counted(qp.underWay.length, 'request')} of ${name} ${qp.underWay.length === 1 ? 'is' : 'are'} under way on a connection that is open${qp.parkedFor === '' ? '' : ` (its send queue is stalled: ${qp.parkedFor})`}; no further cause is known over iWARP`,
    evidence: {
      underWay: qp.underWay.length,
      parkedFor: qp.parkedFor,
      retransmissions: stream.retransmissions,
    },
    advice: 'Look at the peer: what its QP and its program do (--pcap).',
  };
}

/** The QP at the other end was destroyed, which ends no connection. */
function peerGone(scene: Scene, stream: StreamEvidence): Explanation | undefined {
  const far = scene.farStream(stream);
  const peer = far && scene.qp(far.node, far.of.qpn);
  if (far === undefined || peer?.destroyedPs === undefined || far.of.end !== undefined) return undefined;
  return {
    cause: 'peer-qp-destroyed',
    sentence: `its peer, ${qpName(far.node, peer.qpn)}, was destroyed at ${durationText(peer.destroyedPs)} without rdma_disconnect: the TCP connection stays open, and its card drops what arrives`,
    evidence: { destroyedPs: peer.destroyedPs },
    mendLine: scene.lines(far.node, 'QP', peer.qpn)?.destroyed,
    advice: 'Call rdma_disconnect and take DISCONNECTED at both ends before the QP is destroyed.',
  };
}

/** A host waits for an event of a connection whose other end is gone. @param subject the waiting program, in words */
export function abandonedConnection(scene: Scene, node: number, subject: string): Explanation | undefined {
  const [stream, ...others] = streamsOf(scene, node).filter(({ end }) => end === undefined);
  const gone = stream === undefined || others.length > 0 ? undefined : peerGone(scene, stream);
  return gone && { ...gone, sentence: `${subject}, but ${gone.sentence}` };
}

/** A connection that a host, or its peer, opened and whose frames get no acknowledgement. */
export function unansweredConnection(scene: Scene, node: number): Explanation | undefined {
  for (const asking of [node, ...scene.peers(node)]) {
    const stream = scene.device(asking)?.streams.findLast(({ isActive }) => isActive);
    if (stream === undefined || stream.end !== undefined || stream.tries === 0) continue;
    const symptom = { scene, node: asking, stream, far: scene.farStream(stream) };
    const explanation = noAnswer(symptom);
    return explanation && { ...explanation, key: keyOf(symptom) };
  }
  return undefined;
}
