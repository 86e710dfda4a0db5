/**
 * The step of a directed-route SMP through a switch: how its hop pointer and return path change, and where it goes (IBTA volume 1,
 * 14.2.2.2, C14-9 and C14-13; the same rules are in Linux drivers/infiniband/core/smi.c).
 *
 *     outbound (D = 0):  0 ─▶ 1 … count ─▶ count + 1: the agent, or on by DrDLID
 *     returning (D = 1): count + 1 ─▶ count … 1 ─▶ 0: the subnet manager, or on by DrSLID
 *
 * Before and after the directed part an SMP may go by LIDs: DrSLID and DrDLID are permissive where it does not.
 */
import { directedHopsMax, MadStatus, mad, smp } from '../../../abi/index.ts';

/** `agent`: the packet ends here; `port`: it leaves by that port; `lid`: the forwarding table forwards it; otherwise it is dropped. */
export type DirectedStep =
  | { readonly to: 'agent' }
  | { readonly to: 'port'; readonly port: number }
  | { readonly to: 'lid'; readonly lid: number }
  | { readonly to: 'nowhere' };

export const permissiveLid = 0xffff;
const nowhere: DirectedStep = { to: 'nowhere' };
const agent: DirectedStep = { to: 'agent' };
const { hopPointer, hopCount, directedSourceLid, directedDestinationLid, initialPath, returnPath } =
  smp.fields;

export const isReturning = (view: DataView): boolean =>
  (mad.fields.status.get(view, 0) & MadStatus.DIRECTION) !== 0;

/**
 * Processes a directed-route SMP that has arrived, and returns its next step.
 * @param view the SMP, which is changed
 * @param input port by which it arrived, from 1
 * @param portCount ports beside port 0
 */
export function stepDirected(view: DataView, input: number, portCount: number): DirectedStep {
  const count = hopCount.get(view, 0);
  if (count > directedHopsMax) return nowhere;
  return isReturning(view) ? stepBack(view, count, portCount) : stepOut(view, count, input, portCount);
}

/** An agent's response begins its way back. @param arrival port by which the request had come */
export function beginReturn(view: DataView, arrival: number, portCount: number): DirectedStep {
  const count = hopCount.get(view, 0);
  // A request that came by LIDs alone, or from a neighbour that named no hop.
  if (count === 0) {
    hopPointer.set(view, 0, 0);
    const lid = directedSourceLid.get(view, 0);
    return lid === permissiveLid ? { to: 'port', port: arrival } : { to: 'lid', lid };
  }
  hopPointer.set(view, 0, count);
  return leaveBy(returnPath.get(view, 0)[count]!, portCount);
}

function stepOut(view: DataView, count: number, input: number, portCount: number): DirectedStep {
  const pointer = hopPointer.get(view, 0);
  if (pointer === 0 && count > 0) {
    // The directed part begins here, after a part by LIDs; a neighbour would have counted its own hop.
    if (directedSourceLid.get(view, 0) === permissiveLid) return nowhere;
    hopPointer.set(view, 0, 1);
    return leaveBy(initialPath.get(view, 0)[1]!, portCount);
  }
  if (pointer > count + 1) return nowhere;
  if (pointer === count + 1) return agent;
  if (pointer > 0) returnPath.get(view, 0)[pointer] = input;
  hopPointer.set(view, 0, pointer + 1);
  if (pointer < count) return leaveBy(initialPath.get(view, 0)[pointer + 1]!, portCount);
  const lid = directedDestinationLid.get(view, 0);
  return lid === permissiveLid ? agent : { to: 'lid', lid };
}

function stepBack(view: DataView, count: number, portCount: number): DirectedStep {
  const pointer = hopPointer.get(view, 0);
  // A switch has no subnet manager, to which pointer 0 leads.
  if (pointer === 0 || pointer > count + 1) return nowhere;
  hopPointer.set(view, 0, pointer - 1);
  if (pointer > 1) return leaveBy(returnPath.get(view, 0)[pointer - 1]!, portCount);
  const lid = directedSourceLid.get(view, 0);
  return lid === permissiveLid ? nowhere : { to: 'lid', lid };
}

const leaveBy = (port: number, portCount: number): DirectedStep =>
  port > 0 && port <= portCount ? { to: 'port', port } : nowhere;
