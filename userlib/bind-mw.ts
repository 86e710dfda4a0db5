/** Binding of memory windows of type 1 (ibv_bind_mw); those of type 2 are bound by postSend with IBV_WR_BIND_MW. */
import { IBV_MW_TYPE_1, IBV_WR_BIND_MW } from './constants.ts';
import { incRkey } from './memory.ts';
import type { IbvMw, IbvMwBind, IbvQp } from './objects.ts';
import { postSend } from './post-send.ts';
import { EINVAL } from './verbs-error.ts';

/**
 * Posts the bind of a window of type 1 to its next key, which becomes `mw.rkey`. Length 0 unbinds it.
 * @returns 0, or a positive errno, as postSend
 */
export function bindMw(qp: IbvQp, mw: IbvMw, { wrId, sendFlags, bindInfo }: IbvMwBind): number {
  if (mw.type !== IBV_MW_TYPE_1 || mw.pd !== qp.pd) return EINVAL;
  const rkey = incRkey(mw.rkey);
  const bindMw = { mw, rkey, bindInfo };
  const error = postSend(qp, { wrId, sendFlags, sgList: [], numSge: 0, opcode: IBV_WR_BIND_MW, bindMw });
  if (error === 0) mw.rkey = rkey;
  return error;
}
