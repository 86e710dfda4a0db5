/** Explains why a call of the control path was refused: the error's text gives the reason; some refusals have their own cause. */
import { counted, type Explanation } from './cause.ts';
import type { Scene } from './scene.ts';

/** @param text of the error, such as "ibv_destroy_cq: 1 events are not acknowledged (EBUSY)" */
export function refusedVerbExplained(scene: Scene, node: number, text: string): Explanation {
  const verb = text.split(':')[0]!;
  const events = /^ibv_destroy_cq: (\d+) events are not acknowledged/.exec(text)?.[1];
  if (events !== undefined)
    return {
      cause: 'events-unacknowledged',
      sentence: `Host ${node} destroys a CQ of which ${counted(Number(events), 'event')} ${events === '1' ? 'was' : 'were'} taken and not acknowledged: libibverbs waits in ibv_destroy_cq until they are`,
      evidence: { verb, events: Number(events) },
      mendLine: scene.host(node)?.cqs.find(({ events: taken }) => taken > 0)?.armLine,
      advice:
        'Call ibv_ack_cq_events for each event that ibv_get_cq_event returned, at the latest before ibv_destroy_cq.',
    };
  const connectionEvents = /^rdma_destroy_id: (\d+) events are not acknowledged/.exec(text)?.[1];
  if (connectionEvents !== undefined)
    return {
      cause: 'events-unacknowledged',
      sentence: `Host ${node} destroys an ID of which ${counted(Number(connectionEvents), 'event')} ${connectionEvents === '1' ? 'was' : 'were'} taken and not acknowledged: librdmacm waits in rdma_destroy_id until they are`,
      evidence: { verb, events: Number(connectionEvents) },
      advice: 'Call rdma_ack_cm_event for each event that rdma_get_cm_event returned.',
    };
  return {
    cause: 'verb-refused',
    sentence: `Host ${node} was refused a call: ${text}`,
    evidence: { verb },
    advice: 'The text names the argument and its allowed values.',
  };
}
