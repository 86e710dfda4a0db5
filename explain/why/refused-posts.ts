/** Explains why a post returned an error number: the contents of the queue, and the demand of the request. */
import type { RefusedCall } from '../../machine/evidence/index.ts';
import { counted, type Explanation, explained, qpName, type Rule } from './cause.ts';
import type { Scene } from './scene.ts';

export interface RefusedPost {
  readonly scene: Scene;
  readonly node: number;
  readonly call: RefusedCall;
}

const nameOf = ({ node, call }: RefusedPost): string =>
  call.qpn < 0 ? `a shared receive queue of host ${node}` : qpName(node, call.qpn);

const isSend = ({ call }: RefusedPost): boolean => call.call === 'ibv_post_send';

const sendQueueFull: Rule<RefusedPost> = (refused) => {
  const { call } = refused;
  if (!isSend(refused) || call.errno !== 'ENOMEM') return undefined;
  const { outstanding, unsignalled, capacity, unpolled } = call;
  const evidence = { outstanding, unsignalled, capacity, unpolled };
  const full = `ibv_post_send returned ENOMEM ${counted(call.count, 'time')}: the send queue of ${nameOf(refused)} holds ${outstanding} of ${capacity} requests`;
  if (unpolled > 0)
    return {
      cause: 'send-queue-unpolled',
      sentence: `${full}, and ${counted(unpolled, 'completion')} in its CQ were not polled`,
      evidence,
      advice:
        'Poll the CQ: a slot is free once the completion of its request, or of a later one, was polled.',
    };
  if (unsignalled === outstanding)
    return {
      cause: 'send-queue-unsignalled',
      sentence: `${full}, all of them unsignalled: none will ever have a completion, and only a polled completion frees slots`,
      evidence,
      advice: `Signal every n-th request (IBV_SEND_SIGNALED), at least one in ${capacity}, and poll its completion.`,
    };
  return {
    cause: 'send-queue-full',
    sentence: `${full}, of which ${outstanding - unsignalled} signalled ones have not completed yet`,
    evidence,
    advice: 'Wait for completions before posting more, or ask for a larger max_send_wr.',
  };
};

const receiveQueueFull: Rule<RefusedPost> = (refused) => {
  const { call } = refused;
  if (call.errno !== 'ENOMEM') return undefined;
  return {
    cause: 'receive-queue-full',
    sentence: `${call.call} returned ENOMEM ${counted(call.count, 'time')}: ${nameOf(refused)} has no free slot${call.capacity > 0 ? ` of ${call.capacity}` : ''} for another receive${call.unpolled > 0 ? `, and ${counted(call.unpolled, 'completion')} were not polled` : ''}`,
    evidence: { outstanding: call.outstanding, capacity: call.capacity, unpolled: call.unpolled },
    advice:
      'Ask for a larger max_recv_wr (max_wr of an SRQ), or post the next receive when one has completed.',
  };
};

const wrongState: Rule<RefusedPost> = (refused) => {
  const { scene, node, call } = refused;
  const allowed = isSend(refused)
    ? ['RTS', 'SQD', 'SQE', 'ERR']
    : ['INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'];
  if (call.qpn < 0 || allowed.includes(call.state)) return undefined;
  return {
    cause: 'post-in-wrong-state',
    sentence: `${call.call} returned EINVAL: ${nameOf(refused)} is in ${call.state}, and ${isSend(refused) ? 'sends are posted from RTS on' : 'receives are posted from INIT on'}`,
    evidence: { state: call.state },
    mendLine: scene.lines(node, 'QP', call.qpn)?.toRtr ?? scene.lines(node, 'QP', call.qpn)?.created,
    advice: 'Bring the QP to the state with ibv_modify_qp first (RESET, INIT, RTR, RTS).',
  };
};

const sharedQueue: Rule<RefusedPost> = (refused) => {
  if (isSend(refused) || !refused.call.hasSharedQueue) return undefined;
  return {
    cause: 'receive-to-qp-with-srq',
    sentence: `ibv_post_recv returned EINVAL: ${nameOf(refused)} takes its receives from a shared receive queue`,
    evidence: {},
    advice: 'Post with ibv_post_srq_recv.',
  };
};

const tooManySegments: Rule<RefusedPost> = (refused) => {
  const { segments, segmentsMax, call } = refused.call;
  if (segments <= segmentsMax) return undefined;
  return {
    cause: 'too-many-segments',
    sentence: `${call} returned EINVAL: the request has ${segments} buffers, ${nameOf(refused)} takes ${segmentsMax}`,
    evidence: { segments, segmentsMax },
    advice: 'Ask for more max_send_sge or max_recv_sge when the QP is created.',
  };
};

const inlineTooLong: Rule<RefusedPost> = (refused) => {
  const { inlineBytes, inlineMax, operation } = refused.call;
  if (inlineBytes < 0) return undefined;
  if (/READ|SWAP|ADD/.test(operation))
    return {
      cause: 'inline-of-read',
      sentence: `ibv_post_send returned EINVAL: ${operation} on ${nameOf(refused)} has IBV_SEND_INLINE, but its buffer is written, not sent`,
      evidence: { operation },
      advice: 'Leave IBV_SEND_INLINE out.',
    };
  if (inlineBytes <= inlineMax) return undefined;
  return {
    cause: 'inline-too-long',
    sentence: `ibv_post_send returned EINVAL: ${inlineBytes} bytes inline, ${nameOf(refused)} takes ${inlineMax}`,
    evidence: { inlineBytes, inlineMax },
    advice: 'Ask for more max_inline_data when the QP is created, or leave IBV_SEND_INLINE out.',
  };
};

const wrongOpcode: Rule<RefusedPost> = (refused) => {
  const { scene, node, call } = refused;
  const service = scene.qp(node, call.qpn)?.service;
  if (!isSend(refused) || service === undefined) return undefined;
  const isSendOperation = call.operation === 'SEND' || call.operation === 'SEND_IMM';
  const isWrite = call.operation.startsWith('WRITE');
  const hasIt = service === 'RC' || isSendOperation || ((service === 'UC' || service === 'XRC') && isWrite);
  if (hasIt) return undefined;
  return {
    cause: 'unsupported-operation',
    sentence: `ibv_post_send returned EINVAL: ${nameOf(refused)} is ${service}, which has no ${call.operation}`,
    evidence: { service, operation: call.operation },
    advice: 'UD has SEND only, UC has SEND and WRITE, RC has all.',
  };
};

const other: Rule<RefusedPost> = (refused) => {
  const { call } = refused;
  return {
    cause: 'post-refused',
    sentence: `${call.call} returned ${call.errno} for a ${call.operation} with ${counted(call.segments, 'buffer')} on ${nameOf(refused)}: a field of the request does not fit its type or its opcode`,
    evidence: { errno: call.errno, operation: call.operation },
    advice: 'Check opcode, num_sge against sg_list, lengths, wr.rdma, wr.atomic or wr.ud of the request.',
  };
};

const rules = [
  sendQueueFull,
  receiveQueueFull,
  wrongState,
  sharedQueue,
  tooManySegments,
  inlineTooLong,
  wrongOpcode,
  other,
];

export const refusedPostExplained = (refused: RefusedPost): Explanation => explained(rules, refused)!;
