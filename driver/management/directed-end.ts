/**
 * Directed-route SMPs at a channel adapter, where a route can only begin and end: IBTA volume 1, 14.2.2.2; smi_handle_dr_smp_recv and
 * smi_handle_dr_smp_send of Linux drivers/infiniband/core/smi.c.
 */
import { directedHopsMax, smp } from '../../abi/index.ts';
import { permissiveLid } from '../cm/index.ts';

const { hopPointer, hopCount, directedSourceLid, directedDestinationLid, returnPath } = smp.fields;

/** A request has arrived by a port: notes the port in its way back. @returns false if its route does not end here */
export function arriveDirected(view: DataView, port: number): boolean {
  const [pointer, count] = [hopPointer.get(view, 0), hopCount.get(view, 0)];
  if (count > directedHopsMax) return false;
  if (pointer === count + 1) return true;
  if (pointer !== count || directedDestinationLid.get(view, 0) !== permissiveLid) return false;
  if (count > 0) returnPath.get(view, 0)[pointer] = port;
  hopPointer.set(view, 0, pointer + 1);
  return true;
}

/** A response leaves by a port. @returns false if its way back does not begin there */
export function returnDirected(view: DataView, port: number): boolean {
  const count = hopCount.get(view, 0);
  if (count === 0) return directedSourceLid.get(view, 0) === permissiveLid;
  hopPointer.set(view, 0, count);
  return returnPath.get(view, 0)[count] === port;
}
