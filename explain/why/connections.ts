/** Connections by rdma_cm: why an event does not arrive, or reports a failed connection. */
import { errnoNumbers } from '../../driver/index.ts';
import type { ConnectionCall, ConnectionEvent } from '../../machine/evidence/index.ts';
import { counted, durationText, type Explanation } from './cause.ts';
import type { Scene } from './scene.ts';
import { abandonedConnection, sentAgain, unansweredConnection } from './streams.ts';

/** Events that end an attempt, with their meaning. */
const failures: Readonly<Record<string, string>> = {
  RDMA_CM_EVENT_ADDR_ERROR: 'no device has a path to the address, or nothing answered for it',
  RDMA_CM_EVENT_ROUTE_ERROR: 'no route was found to the address',
  RDMA_CM_EVENT_UNREACHABLE: 'the peer did not answer the request',
  RDMA_CM_EVENT_CONNECT_ERROR: 'the peer gave up before the connection was ready',
};

/** Common reasons of a REJ (IBTA vol 1, 12.6.7.2). */
const rejectReasons: Readonly<Record<number, string>> = {
  1: 'the peer has no QP for it',
  3: 'the peer has no resources for it',
  4: 'the peer timed out',
  8: 'nothing listens on that port there',
  10: 'the peer still has a connection with these numbers (stale)',
  28: 'the program of the peer refused it (rdma_reject)',
};

const callsOf = (scene: Scene, node: number, name: string): ConnectionCall[] =>
  (scene.host(node)?.connectionCalls ?? []).filter(({ call }) => call === name);
const eventsOf = (scene: Scene, node: number, name: string): ConnectionEvent[] =>
  (scene.host(node)?.connectionEvents ?? []).filter(({ event }) => event === `RDMA_CM_EVENT_${name}`);

/** Why a connection over TCP was not made: its status is a negative errno. */
function failedOverTcp(
  scene: Scene,
  node: number,
  { event, status, atPs }: ConnectionEvent,
): string | undefined {
  const streams = scene.device(node)?.streams ?? [];
  const [stream, ...others] = streams.filter(({ isActive, openedPs }) => isActive && openedPs <= atPs);
  if (stream === undefined) return undefined;
  // An event does not name its connection.
  if (others.length > 0) return refusalsOverTcp[status];
  const { establishedPs, remotePort } = stream;
  if (event === 'RDMA_CM_EVENT_UNREACHABLE')
    return establishedPs === undefined
      ? `no SYN-ACK came: TCP sent its SYN again ${counted(sentAgain(stream), 'time')}`
      : `TCP was connected at ${durationText(establishedPs)}, and no MPA reply of the peer came within driver.mpaLimitMs`;
  if (event !== 'RDMA_CM_EVENT_REJECTED') return undefined;
  if (status !== -errnoNumbers.ECONNREFUSED) return refusalsOverTcp[status];
  if (establishedPs === undefined)
    return `nothing listens on port ${remotePort} there, and the peer answered the SYN by a RST`;
  const far = scene.farStream(stream);
  if (far === undefined) return 'the MPA reply of the peer has the reject bit';
  return callsOf(scene, far.node, 'rdma_reject').length > 0
    ? 'the program of the peer refused it (rdma_reject) by an MPA reply with the reject bit'
    : 'the MPA reply of the peer has the reject bit, and no program there called rdma_reject: its kernel did, e.g. since the backlog of rdma_listen was full';
}

/** Reasons of a REJECTED over TCP, by its status. */
const refusalsOverTcp: Readonly<Record<number, string>> = {
  [-errnoNumbers.ECONNREFUSED]: 'the peer answered the SYN by a RST, or rejected the MPA request',
  [-errnoNumbers.EPROTO]:
    'the MPA reply of the peer is malformed, or of a revision or with markers that this side lacks',
  [-errnoNumbers.ECONNRESET]: 'the peer closed or reset the TCP connection before its MPA reply',
};

/** The last event of a host, if it reports a failed connection. */
export function connectionFailed(scene: Scene, node: number): Explanation | undefined {
  const last = scene.host(node)?.connectionEvents.at(-1);
  if (last === undefined) return undefined;
  const { event, status, atPs } = last;
  const isRejected = event === 'RDMA_CM_EVENT_REJECTED';
  const reason =
    failedOverTcp(scene, node, last) ??
    (isRejected ? (rejectReasons[status] ?? `reason ${status}`) : failures[event]);
  if (reason === undefined) return undefined;
  const asked = callsOf(scene, node, 'rdma_resolve_addr').at(-1);
  return {
    cause: isRejected ? 'connection-rejected' : 'connection-failed',
    sentence: `The connection of host ${node}${asked === undefined ? '' : ` to ${asked.detail}`} ended with ${event} (status ${status}) at ${durationText(atPs)}: ${reason}`,
    evidence: { event, status },
    mendLine: asked?.line,
    advice:
      isRejected && reason.startsWith('nothing listens')
        ? 'Let the peer call rdma_listen on that port before the other side connects.'
        : 'Check address and port, and which side listens; look at event->event and event->status after each rdma_get_cm_event.',
    key: `connection ${node}`,
  };
}

/** A program waits for an event of rdma_cm. @param subject of the sentence */
export function connectionWait(scene: Scene, node: number, subject: string): Explanation | undefined {
  const far = scene.farNode(node);
  if (far === undefined) return undefined;
  const failed = connectionFailed(scene, node);
  const unanswered = failed ?? unansweredConnection(scene, node) ?? abandonedConnection(scene, node, subject);
  if (unanswered !== undefined) return unanswered;
  const evidence = { calls: scene.host(node)?.connectionCalls.length ?? 0 };
  const own = (name: string): number => callsOf(scene, node, name).length;
  const theirs = (name: string): number => callsOf(scene, far, name).length;
  const answered = theirs('rdma_accept') + theirs('rdma_reject');
  const [request] = eventsOf(scene, far, 'CONNECT_REQUEST').slice(answered);
  if (own('rdma_connect') > 0 && request !== undefined)
    return {
      cause: 'connection-not-accepted',
      sentence: `${subject} after rdma_connect: host ${far} took the CONNECT_REQUEST at ${durationText(request.atPs)} and neither accepted nor rejected it`,
      evidence,
      mendLine: callsOf(scene, far, 'rdma_listen').at(-1)?.line,
      advice: 'Call rdma_accept (or rdma_reject) for the ID of the event.',
      key: 'connection-not-accepted',
    };
  if (own('rdma_connect') > 0 && theirs('rdma_listen') > 0 && answered === 0)
    return {
      cause: 'connection-request-not-taken',
      sentence: `${subject} after rdma_connect: host ${far} listens, and does not take the CONNECT_REQUEST (rdma_get_cm_event)`,
      evidence,
      mendLine: callsOf(scene, far, 'rdma_listen').at(-1)?.line,
      advice: 'Call rdma_get_cm_event on the channel of the listening ID, then rdma_accept.',
      key: 'connection-not-accepted',
    };
  if (own('rdma_accept') > 0 && eventsOf(scene, node, 'ESTABLISHED').length === 0)
    return {
      cause: 'connection-answer-not-taken',
      sentence: `${subject} after rdma_accept: host ${far} does not take the answer (rdma_get_cm_event), which makes its QP ready and confirms the connection`,
      evidence,
      mendLine: callsOf(scene, far, 'rdma_connect').at(-1)?.line,
      advice: 'Call rdma_get_cm_event at the connecting side until RDMA_CM_EVENT_ESTABLISHED.',
      key: 'connection-not-accepted',
    };
  if (own('rdma_listen') > 0 && theirs('rdma_connect') === 0)
    return {
      cause: 'connection-never-asked',
      sentence: `${subject} and listens: host ${far} never called rdma_connect${theirs('rdma_resolve_addr') > 0 ? ', only rdma_resolve_addr' : ''}`,
      evidence,
      mendLine: callsOf(scene, far, 'rdma_resolve_addr').at(-1)?.line,
      advice:
        'After ADDR_RESOLVED call rdma_resolve_route, after ROUTE_RESOLVED rdma_create_qp and rdma_connect.',
      key: `connection ${node}`,
    };
  const last = scene.host(node)?.connectionCalls.at(-1);
  return {
    cause: 'no-connection-event',
    sentence: `${subject}, and none of its requests is in progress: its last call was ${last === undefined ? 'none of rdma_cm' : last.call}`,
    evidence,
    mendLine: last?.line,
    advice:
      'Each call has its event: rdma_resolve_addr, rdma_resolve_route, rdma_connect, rdma_accept, rdma_disconnect.',
    key: `connection ${node}`,
  };
}
