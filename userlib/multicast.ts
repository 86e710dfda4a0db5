/**
 * Multicast groups of QPs for unreliable datagrams. A GID is 16 bytes; on InfiniBand a group also has a LID from 0xc000 on,
 * which is part of its identity.
 */
import { checkArguments, uint16Max } from './numbers.ts';
import type { IbvQp } from './objects.ts';
import { VerbsError, verb } from './verbs-error.ts';

const gidBytes = 16;

/**
 * Makes a QP a member of a group: it receives packets sent to the GID that its port accepts (ibv_attach_mcast). Attaching it
 * twice makes it a member once.
 * @throws VerbsError EINVAL for another kind of QP, GID or LID; ENOMEM when the group or the table is full
 */
export const attachMcast = (qp: IbvQp, gid: Uint8Array, lid: number): Promise<void> =>
  verb('ibv_attach_mcast', () => {
    checkGroup('ibv_attach_mcast', gid, lid);
    return qp.context.kernel.attachMcast(qp.context.cpu, qp.handle, gid, lid);
  });

/** Ends a membership (ibv_detach_mcast). A QP with memberships cannot be destroyed. @throws VerbsError EINVAL if the QP is not a member */
export const detachMcast = (qp: IbvQp, gid: Uint8Array, lid: number): Promise<void> =>
  verb('ibv_detach_mcast', () => {
    checkGroup('ibv_detach_mcast', gid, lid);
    return qp.context.kernel.detachMcast(qp.context.cpu, qp.handle, gid, lid);
  });

function checkGroup(verbName: string, gid: Uint8Array, lid: number): void {
  if (!(gid instanceof Uint8Array) || gid.length !== gidBytes)
    throw new VerbsError(verbName, 'EINVAL', `the GID has ${gid?.length} bytes, expected ${gidBytes}`);
  checkArguments(verbName, ['lid', lid, uint16Max]);
}
