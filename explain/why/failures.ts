/** Explains why a work request completed with an error: by its status, then by the devices' refusals. */
import { CqeSyndrome } from '../../abi/index.ts';
import type {
  AccessEvidence,
  ErrorEvidence,
  PostEvidence,
  QpEvidence,
  RefusalEvidence,
  StreamEvidence,
} from '../../machine/evidence/index.ts';
import { opcodeRow } from '../../wire/index.ts';
import { accessExplained, qpRightMissing } from './access.ts';
import { durationText, type Explanation, explained, hex, qpName } from './cause.ts';
import { noAnswerRules, notReady, psnMismatch } from './retries.ts';
import { type Scene, stateAt } from './scene.ts';
import { flushedWithStream, withTerminate } from './streams.ts';

export interface FailedRequest {
  readonly scene: Scene;
  readonly node: number;
  readonly error: ErrorEvidence;
  readonly qp: QpEvidence;
  readonly post: PostEvidence | undefined;
}

/** Undefined if an earlier failure or the peer's request is the cause, which has a finding of its own. */
export function failureExplained(failed: FailedRequest): Explanation | undefined {
  const { scene, node, qp, post, error } = failed;
  switch (error.syndrome) {
    case CqeSyndrome.TRANSPORT_RETRY_EXC_ERR:
      return explained(noAnswerRules, { scene, node, qp, post, atPs: error.atPs });
    case CqeSyndrome.RNR_RETRY_EXC_ERR:
      return notReady({ scene, node, qp, post, atPs: error.atPs });
    case CqeSyndrome.WR_FLUSH_ERR:
      return flushed(failed);
    case CqeSyndrome.LOCAL_LENGTH_ERR:
      return error.isSend ? sendTooLong(failed) : messageTooLong(failed);
    case CqeSyndrome.LOCAL_PROT_ERR:
      return localProtection(failed);
    case CqeSyndrome.LOCAL_QP_OP_ERR:
      return localOperation(failed);
    case CqeSyndrome.MW_BIND_ERR:
      return bind(failed);
    case CqeSyndrome.BAD_RESP_ERR:
      return badResponse(failed);
    case CqeSyndrome.REMOTE_ACCESS_ERR:
    case CqeSyndrome.REMOTE_INVAL_REQ_ERR:
    case CqeSyndrome.REMOTE_OP_ERR:
      return error.isSend ? refusedByPeer(failed) : remoteInvalidate(failed);
    default:
      return undefined;
  }
}

const operationText = ({ post }: FailedRequest): string => post?.operation ?? 'request';

const requestText = (failed: FailedRequest): string =>
  `The ${operationText(failed)} of ${qpName(failed.node, failed.qp.qpn)}`;

// Flushed.

function flushed({ scene, node, error, qp }: FailedRequest): Explanation | undefined {
  const device = scene.device(node)!;
  const isEarlier = (one: ErrorEvidence): boolean =>
    one.qpn === qp.qpn &&
    one.syndrome !== CqeSyndrome.WR_FLUSH_ERR &&
    one.atPs <= error.atPs &&
    one.atPs >= qp.createdPs;
  if (device.errors.some(isEarlier)) return undefined;
  const isOfQp = (one: RefusalEvidence): boolean => one.qpn === qp.qpn && one.atPs <= error.atPs;
  // A request that an unreliable connection refuses changes no state.
  if (qp.service !== 'UC' && device.refusals.some(isOfQp)) return undefined;
  const broken = [qp.sendCqn, qp.receiveCqn].find((cqn) => (scene.cq(node, cqn)?.status ?? 'ok') !== 'ok');
  if (broken !== undefined) return undefined;
  const stream = scene.stream(node, qp.qpn, error.atPs);
  if (stream !== undefined) {
    const explanation = flushedWithStream(scene, node, { stream, isSend: error.isSend });
    if (explanation !== undefined || hasFindingOfItsOwn(stream)) return explanation;
  }
  const entered = qp.states.findLast(
    ({ state, atPs }) => (state === 'ERR' || state === 'SQE') && atPs <= error.atPs,
  );
  if (entered?.by === 'software')
    return {
      cause: 'flushed-by-program',
      weight: 'note',
      sentence: `The program put ${qpName(node, qp.qpn)} into ERR at ${durationText(entered.atPs)}: requests that were under way or posted later complete as flushed`,
      evidence: { erredPs: entered.atPs },
      mendLine: scene.lines(node, 'QP', qp.qpn)?.toError,
      advice:
        'Nothing is wrong if the QP is being drained; else wait for completions before ibv_modify_qp to ERR.',
      key: `flushed ${node} ${qp.qpn}`,
    };
  return {
    cause: 'flushed',
    sentence: `${qpName(node, qp.qpn)} was in ERR when the request was posted or under way`,
    evidence: { state: stateAt(qp, error.atPs) },
    advice: 'Look for the asynchronous event of the QP (ibv_get_async_event).',
    key: `flushed ${node} ${qp.qpn}`,
  };
}

/** Whether the end of a stream is a symptom itself: see streams.ts. */
const hasFindingOfItsOwn = ({ ownError, peerError, end, hasAborted }: StreamEvidence): boolean =>
  ownError !== undefined || peerError !== undefined || end === 'timedOut' || (end === 'reset' && !hasAborted);

// Errors of this side.

/** The last access that a device refused to a QP before an instant. */
function accessBefore(scene: Scene, node: number, qpn: number, atPs: number): AccessEvidence | undefined {
  return scene.device(node)?.accesses.findLast((access) => access.qpn === qpn && access.atPs <= atPs);
}

function localProtection(failed: FailedRequest): Explanation | undefined {
  const { scene, node, qp, error } = failed;
  // The sink of a READ over iWARP, which ended the stream.
  const isSink = scene.stream(node, qp.qpn, error.atPs)?.ownError?.message === 'READ_RESPONSE';
  if (isSink && error.isSend) return undefined;
  const access = accessBefore(scene, node, qp.qpn, error.atPs);
  const side = error.isSend ? 'local' : 'receive';
  const what = error.isSend ? requestText(failed) : `A receive of ${qpName(node, qp.qpn)}`;
  if (access !== undefined) {
    const buffers = failed.post?.buffers;
    const explanation = accessExplained({
      scene,
      node,
      access,
      what,
      askingNode: node,
      side,
      ...(buffers === undefined ? {} : { buffers }),
    });
    return { ...explanation, key: `access ${node} ${qp.qpn} ${access.key}` };
  }
  return {
    cause: `${side}-unreadable`,
    sentence: `${what} needs memory that the host did not answer for`,
    evidence: {},
    advice: 'The read ended with an error on PCIe: see the faults of the run, and the IOMMU’s.',
  };
}

function sendTooLong({ scene, node, qp, post, error }: FailedRequest): Explanation {
  const bytes = post?.bytes ?? 0;
  const name = qpName(node, qp.qpn);
  if (qp.service === 'UD' && bytes > qp.mtuBytes)
    return {
      cause: 'datagram-too-long',
      sentence: `The SEND of ${bytes} bytes on ${name} is longer than a datagram, which is one packet of at most ${qp.mtuBytes} bytes`,
      evidence: { bytes, mtu: qp.mtuBytes },
      advice: 'Cut the message, or use a connection (RC or UC).',
    };
  const operation = post?.operation ?? 'request';
  if (/SWAP|ADD/.test(operation))
    return {
      cause: 'atomic-length',
      sentence: `The ${operation} on ${name} has a buffer of ${bytes} bytes, an atomic returns 8`,
      evidence: { bytes },
      advice: 'Give an atomic one sge of 8 bytes.',
    };
  return {
    cause: 'message-too-long',
    sentence: `The ${operation} of ${bytes} bytes on ${name} is longer than a message may be`,
    evidence: { bytes, wqe: error.wqeCounter, device: scene.device(node)?.node ?? node },
    advice: 'A message has at most 2^31 bytes (max_msg_sz of ibv_query_port), a UD message one MTU.',
  };
}

function messageTooLong({ scene, node, qp, error }: FailedRequest): Explanation {
  const explanation = receiveTooShort(scene, node, qp, error.atPs);
  const ended = scene.stream(node, qp.qpn, error.atPs)?.ownError;
  return ended === undefined ? explanation : withTerminate(explanation, node, ended.error);
}

/** A message that is too long for the receive that it found: the reports of both sides are one finding. */
function receiveTooShort(scene: Scene, node: number, qp: QpEvidence, atPs: number): Explanation {
  const isDatagram = qp.service === 'UD' || qp.service === 'MLX';
  const sender = isDatagram ? undefined : scene.intended(node, qp);
  const post =
    sender &&
    scene
      .host(sender.node)
      ?.posts.findLast(
        (one) => one.qpn === sender.of.qpn && one.atPs <= atPs && one.operation.startsWith('SEND'),
      );
  return {
    cause: isDatagram ? 'ud-receive-too-short' : 'receive-too-short',
    sentence: isDatagram
      ? `A datagram did not fit the receive of ${qpName(node, qp.qpn)}: 40 bytes for the GRH come before the payload`
      : `A message${post === undefined ? '' : ` of ${post.bytes} bytes`} to ${qpName(node, qp.qpn)} is longer than the receive that it found`,
    evidence: { ...(post === undefined ? {} : { bytes: post.bytes }), receivesTaken: qp.receivesTaken },
    mendLine: scene.receiveLine(node, qp),
    advice: isDatagram
      ? 'Make each receive of a UD QP 40 bytes longer than the largest payload.'
      : 'Post receives as long as the longest message, or agree on a length.',
    key: `receive ${node} ${qp.qpn}`,
  };
}

function localOperation({ scene, node, qp, post }: FailedRequest): Explanation {
  const operation = post?.operation ?? 'request';
  const name = qpName(node, qp.qpn);
  if (qp.service === 'UD')
    return {
      cause: 'ah-wrong-pd',
      sentence: `The ${operation} on ${name} has an address handle of another protection domain than the QP’s ${hex(qp.pd)}, or an opcode that UD does not have`,
      evidence: { qpPd: qp.pd, operation },
      advice:
        'Create the address handle with the protection domain of the QP; UD has SEND and SEND with immediate only.',
    };
  if (/LOCAL_INV|BIND|FAST_REG/.test(operation)) return keyOperation(node, qp, operation);
  const lacking = lackingOverIwarp(scene, name, qp, post);
  if (lacking !== undefined) return lacking;
  return {
    cause: 'unsupported-operation',
    sentence: `The device refused ${operation} on ${name}: service ${qp.service} does not have it, or the WQE is malformed`,
    evidence: {
      operation,
      service: qp.service,
      maxRdAtomic: qp.requesterReadsMax,
      device: scene.device(node)?.node ?? node,
    },
    advice: 'READ and atomics need RC; check opcode, sizes and max_rd_atomic.',
  };
}

/** Operations that RFC 5040 does not have, and those that RFC 7306 adds. */
function lackingOverIwarp(
  scene: Scene,
  name: string,
  qp: QpEvidence,
  post: PostEvidence | undefined,
): Explanation | undefined {
  const stream = scene.devices.flatMap(({ streams }) => streams).find(({ qpn }) => qpn === qp.qpn);
  if (stream === undefined || post === undefined) return undefined;
  const { operation, buffers } = post;
  const isExtension = /SWAP|ADD|^WRITE_IMM/.test(operation);
  const isLacking = operation === 'SEND_IMM' || (isExtension && !stream.hasExtensions);
  const isManySinks = operation === 'READ' && buffers.length > 1;
  if (!isLacking && !isManySinks) return undefined;
  return {
    cause: isLacking ? 'iwarp-lacks-operation' : 'read-of-several-sinks',
    sentence: isLacking
      ? `The device refused ${operation} on ${name} (LOC_QP_OP_ERR): ${operation === 'SEND_IMM' ? 'a SEND of iWARP has no immediate data, with RFC 7306 neither' : 'iWARP of RFC 5040 has neither atomics nor immediate data'}`
      : `The device refused a READ of ${buffers.length} buffers on ${name} (LOC_QP_OP_ERR): a READ of iWARP names its sink by one STag`,
    evidence: { operation, extensions: stream.hasExtensions ? 1 : 0, buffers: buffers.length },
    advice: isManySinks
      ? 'Post a READ for each buffer (num_sge 1).'
      : operation === 'SEND_IMM'
        ? 'Put the value into the message, or use WRITE with immediate with hca.capability.iwarpExtensions.'
        : 'Use SEND, WRITE and READ, or set hca.capability.iwarpExtensions (RFC 7306).',
  };
}

const keyOperation = (node: number, qp: QpEvidence, operation: string): Explanation => ({
  cause: 'key-operation-refused',
  sentence: `The device refused ${operation} on ${qpName(node, qp.qpn)}: the key is not of a region or window that it may be done to, in its protection domain and state`,
  evidence: { operation },
  advice:
    'Invalidate only keys of type-2 windows and fast-registered regions that are valid and, of windows, bound to this QP.',
});

function bind({ node, qp, post }: FailedRequest): Explanation {
  if (post !== undefined && /LOCAL_INV|FAST_REG/.test(post.operation))
    return keyOperation(node, qp, post.operation);
  return {
    cause: 'bind-refused',
    sentence: `The bind on ${qpName(node, qp.qpn)} was refused: the region does not allow windows (IBV_ACCESS_MW_BIND), lacks a right of the window, is of another protection domain, or is shorter than the window`,
    evidence: {},
    advice:
      'Register the region with IBV_ACCESS_MW_BIND and every right that its windows give, local write among them.',
  };
}

function badResponse({ scene, node, qp, error }: FailedRequest): Explanation {
  const peer = scene.peer(node, qp, error.atPs);
  return peer !== undefined && peer.of.mtuBytes !== qp.mtuBytes
    ? mtuMismatch(scene, node, qp, peer.node, peer.of)
    : {
        cause: 'bad-response',
        sentence: `The answers to ${qpName(node, qp.qpn)} do not have the lengths that its READ asked for`,
        evidence: { mtu: qp.mtuBytes },
        advice: 'The peer breaks the protocol: look at its packets (--pcap).',
      };
}

function mtuMismatch(
  scene: Scene,
  node: number,
  qp: QpEvidence,
  peerNode: number,
  peer: QpEvidence,
): Explanation {
  return {
    cause: 'mtu-mismatch',
    sentence: `${qpName(node, qp.qpn)} has a path MTU of ${qp.mtuBytes} bytes, ${qpName(peerNode, peer.qpn)} has ${peer.mtuBytes}`,
    evidence: { mtu: qp.mtuBytes, peerMtu: peer.mtuBytes },
    mendLine: scene.lines(node, 'QP', qp.qpn)?.toRtr,
    advice: 'Set the same path_mtu at both ends: the lesser of both active_mtu.',
    key: `mtu ${[`${node} ${qp.qpn}`, `${peerNode} ${peer.qpn}`].toSorted().join()}`,
  };
}

// Errors of the peer.

function refusedByPeer(failed: FailedRequest): Explanation {
  const { scene, node, qp, error } = failed;
  const peer = scene.peer(node, qp, error.atPs);
  const unknown = (): Explanation => ({
    cause: 'refused-by-peer',
    sentence: `The peer refused ${operationText(failed)} of ${qpName(node, qp.qpn)}, and is not of this machine or kept no reason`,
    evidence: { syndrome: error.syndrome },
    advice: 'Look at the peer: key, address, length, rights of region and QP, receive.',
  });
  if (peer === undefined) return unknown();
  const refusal = scene
    .device(peer.node)
    ?.refusals.findLast((one) => one.qpn === peer.of.qpn && one.atPs <= error.atPs);
  if (refusal === undefined) {
    // An unreadable key fails the response, not the QP.
    const access = accessBefore(scene, peer.node, peer.of.qpn, error.atPs);
    return access === undefined ? unknown() : remoteAccess(failed, peer.node, access);
  }
  const explanation = refusalExplained(failed, peer.node, peer.of, refusal);
  return explanation ?? unknown();
}

function remoteAccess(failed: FailedRequest, node: number, access: AccessEvidence): Explanation {
  const { scene, node: askingNode } = failed;
  const explanation = accessExplained({
    scene,
    node,
    access,
    what: requestText(failed),
    askingNode,
    side: 'remote',
  });
  return { ...explanation, key: `access ${node} ${access.qpn} ${access.key}` };
}

function refusalExplained(
  failed: FailedRequest,
  node: number,
  peer: QpEvidence,
  refusal: RefusalEvidence,
): Explanation | undefined {
  const { scene, qp, node: askingNode } = failed;
  const what = requestText(failed);
  const packet = opcodeRow(refusal.opcode)?.name ?? hex(refusal.opcode);
  switch (refusal.check) {
    case 'access': {
      const access = accessBefore(scene, node, peer.qpn, refusal.atPs);
      return access && remoteAccess(failed, node, access);
    }
    case 'receive': {
      const ended = scene
        .device(node)
        ?.errors.findLast(
          (one) =>
            one.qpn === peer.qpn &&
            !one.isSend &&
            one.syndrome !== CqeSyndrome.WR_FLUSH_ERR &&
            one.atPs <= refusal.atPs,
        );
      if (ended?.syndrome !== CqeSyndrome.LOCAL_PROT_ERR)
        return receiveTooShort(scene, node, peer, refusal.atPs);
      const access = accessBefore(scene, node, peer.qpn, refusal.atPs);
      if (access === undefined) return undefined;
      const name = `A receive of ${qpName(node, peer.qpn)}`;
      const explanation = accessExplained({
        scene,
        node,
        access,
        what: name,
        askingNode: node,
        side: 'receive',
      });
      return { ...explanation, key: `access ${node} ${peer.qpn} ${access.key}` };
    }
    case 'qpRight':
      return qpRightMissing(scene, node, refusal, what);
    case 'atomicAlignment':
      return {
        cause: 'atomic-misaligned',
        sentence: `${what} names address ${hex(refusal.found)}, which is no multiple of 8`,
        evidence: { address: refusal.found },
        advice: 'Align the target of atomics to 8 bytes.',
      };
    case 'readResources':
      return {
        cause: 'too-many-reads',
        sentence: `${qpName(askingNode, qp.qpn)} has up to ${qp.requesterReadsMax} READs and atomics under way, ${qpName(node, peer.qpn)} keeps ${refusal.heldTo}`,
        evidence: { maxRdAtomic: qp.requesterReadsMax, maxDestRdAtomic: refusal.heldTo },
        mendLine: scene.lines(askingNode, 'QP', qp.qpn)?.toRts,
        advice: 'Set max_rd_atomic to at most the peer’s max_dest_rd_atomic.',
      };
    case 'sharedQueue':
      return {
        cause: 'xrc-wrong-srq',
        sentence: `${what} names a shared receive queue that is not of the XRC domain ${hex(refusal.heldTo)} of ${qpName(node, peer.qpn)}`,
        evidence: { domain: refusal.found, qpDomain: refusal.heldTo },
        advice:
          'Send the number of the peer’s SRQ (ibv_get_srq_num) over, and open QP and SRQ in one XRC domain.',
      };
    case 'broken':
      return {
        cause: 'peer-queue-broken',
        sentence: `${qpName(node, peer.qpn)} could not read its receive queue, or the CQ of its shared queue has failed: it answered ${packet} with a remote operational error`,
        evidence: {},
        advice: `Look at host ${node}: its CQs, and what it did to the memory of its queues.`,
      };
    default:
      return qp.mtuBytes === peer.mtuBytes
        ? (psnMismatch({ scene, node: askingNode, qp, post: failed.post, atPs: refusal.atPs }) ?? {
            cause: 'invalid-request',
            sentence: `${qpName(node, peer.qpn)} refused ${packet} of ${refusal.found} bytes: it does not continue the message, or its length is not the announced one`,
            evidence: { bytes: refusal.found, mtu: peer.mtuBytes },
            advice: 'Look for packets that were lost, corrupted or injected (--pcap).',
          })
        : mtuMismatch(scene, askingNode, qp, node, peer);
  }
}

/** A key in a SEND with Invalidate that may not be invalidated. */
function remoteInvalidate({ node, qp }: FailedRequest): Explanation {
  return {
    cause: 'invalidate-refused',
    sentence: `A SEND with Invalidate to ${qpName(node, qp.qpn)} names a key that may not be invalidated there`,
    evidence: {},
    advice:
      'Name the key of a bound type-2 window or a fast-registered region of that QP’s protection domain.',
  };
}
