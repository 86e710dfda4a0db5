/** Protection domains, memory regions and address handles. */
import { addressVector, staticRateFieldOf, variantOfKey, withVariant } from '../abi/index.ts';
import { type AhAttr, LinkLayerVerb, type MwType } from '../driver/index.ts';
import { checkAddress } from './address-checks.ts';
import { ReregMrFlag } from './constants.ts';
import { checkArguments, checkCount, uint32Max } from './numbers.ts';
import type { IbvAh, IbvContext, IbvMr, IbvMw, IbvPd } from './objects.ts';
import { VerbsError, verb } from './verbs-error.ts';

/** Creates a protection domain (ibv_alloc_pd). */
export async function allocPd(context: IbvContext): Promise<IbvPd> {
  const { handle, pdn } = await verb('ibv_alloc_pd', () => context.kernel.allocPd(context.cpu));
  return { context, handle, pdn };
}

/** Frees a protection domain (ibv_dealloc_pd). Rejects with EBUSY while it has users. */
export const deallocPd = (pd: IbvPd): Promise<void> =>
  verb('ibv_dealloc_pd', () => pd.context.kernel.deallocPd(pd.context.cpu, pd.handle));

/** Registers memory of the process: pins it and gives the device access (ibv_reg_mr). `access` is a mask of IBV_ACCESS_…. */
export async function regMr(pd: IbvPd, addr: number, length: number, access: number): Promise<IbvMr> {
  const { context } = pd;
  checkArguments('ibv_reg_mr', ['addr', addr, Number.MAX_SAFE_INTEGER], ['access', access, uint32Max]);
  checkCount('ibv_reg_mr', ['length', length, Number.MAX_SAFE_INTEGER]);
  const request = { pd: pd.handle, address: addr, lengthBytes: length, access };
  const calls = context.platform.tap?.calls;
  const place = calls?.place();
  const keys = await verb('ibv_reg_mr', () => context.kernel.regMr(context.cpu, request));
  calls?.made('MR', keys.rkey, place);
  return { context, pd, addr, length, ...keys };
}

const { IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_CHANGE_PD, IBV_REREG_MR_CHANGE_ACCESS } = ReregMrFlag;

/**
 * Changes address, protection domain or rights of a region, whose keys stay (ibv_rereg_mr). `flags` of IBV_REREG_MR_CHANGE_…;
 * arguments of unchanged attributes are ignored, but rights without their flag are refused.
 * @throws VerbsError EINVAL before any change; EPERM, EFAULT, ENOMEM and others leave a region that can only be deregistered
 */
export async function reregMr(
  mr: IbvMr,
  flags: number,
  pd: IbvPd | null,
  addr: number,
  length: number,
  access: number,
): Promise<void> {
  const verbName = 'ibv_rereg_mr';
  const refuse = (reason: string): never => {
    throw new VerbsError(verbName, 'EINVAL', reason);
  };
  const known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
  checkArguments(verbName, ['flags', flags, known], ['access', access, uint32Max]);
  const isMoved = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) !== 0;
  const hasNewPd = (flags & IBV_REREG_MR_CHANGE_PD) !== 0;
  const hasNewAccess = (flags & IBV_REREG_MR_CHANGE_ACCESS) !== 0;
  if (flags === 0) refuse('flags is 0, expected at least one change');
  if (access !== 0 && !hasNewAccess)
    refuse(`access is ${access}, expected 0 without IBV_REREG_MR_CHANGE_ACCESS`);
  if (hasNewPd && pd === null) refuse('pd is null, expected one with IBV_REREG_MR_CHANGE_PD');
  if (isMoved) {
    const max = Number.MAX_SAFE_INTEGER;
    checkArguments(verbName, ['addr', addr, max], ['length', length, max]);
    if (addr === 0 || length === 0) refuse(`addr is ${addr} and length ${length}, expected neither to be 0`);
  }
  const calls = mr.context.platform.tap?.calls;
  const place = calls?.place();
  await verb(verbName, () =>
    mr.context.kernel.reregMr(mr.context.cpu, {
      region: mr.handle,
      pd: hasNewPd ? pd!.handle : -1,
      access: hasNewAccess ? access : undefined,
      translation: isMoved ? { address: addr, lengthBytes: length } : undefined,
    }),
  );
  calls?.made('MR', mr.rkey, place);
  if (hasNewPd) mr.pd = pd!;
  if (!isMoved) return;
  mr.addr = addr;
  mr.length = length;
}

/** Removes the device's access to the memory and unpins it (ibv_dereg_mr). */
export async function deregMr(mr: IbvMr): Promise<void> {
  const { context } = mr;
  const calls = context.platform.tap?.calls;
  const place = calls?.place();
  await verb('ibv_dereg_mr', () => context.kernel.deregMr(context.cpu, mr.handle));
  calls?.unmade('MR', mr.rkey, place);
}

/** Allocates a memory window, which gives no access until it is bound (ibv_alloc_mw). */
export async function allocMw(pd: IbvPd, type: MwType): Promise<IbvMw> {
  const { context } = pd;
  const answer = await verb('ibv_alloc_mw', () => context.kernel.allocMw(context.cpu, pd.handle, type));
  return { context, pd, type, ...answer };
}

/** Frees the window and unbinds it (ibv_dealloc_mw). */
export const deallocMw = (mw: IbvMw): Promise<void> =>
  verb('ibv_dealloc_mw', () => mw.context.kernel.deallocMw(mw.context.cpu, mw.handle));

/** The key with the next variant in its low byte (ibv_inc_rkey). */
export const incRkey = (rkey: number): number => withVariant(rkey, variantOfKey(rkey) + 1);

/** An address for UD sends; needs no system call on InfiniBand, and on Ethernet asks the kernel for the MAC (ibv_create_ah). */
export async function createAh(pd: IbvPd, attr: AhAttr): Promise<IbvAh> {
  checkAddress('ibv_create_ah', attr);
  if (attr.portNum < 1 || attr.portNum > 2)
    throw new VerbsError('ibv_create_ah', 'EINVAL', `portNum is ${attr.portNum}, expected 1 or 2`);
  const route = attr.isGlobal === 1 ? attr.grh : undefined;
  const { context } = pd;
  const isEthernet = context.info.linkLayers[attr.portNum - 1] === LinkLayerVerb.IBV_LINK_LAYER_ETHERNET;
  const destinationMac = isEthernet
    ? await verb('ibv_create_ah', () => context.kernel.createAh(context.cpu, attr))
    : undefined;
  const serviceLevel = attr.sl ?? 0;
  const vector = addressVector.encode({
    port: attr.portNum,
    pd: pd.pdn,
    // On Ethernet, a priority of three bits, and no LIDs.
    ...(isEthernet
      ? { serviceLevel: (serviceLevel & 7) << 1 }
      : { sourcePathBits: attr.srcPathBits ?? 0, destinationLid: attr.dlid, serviceLevel }),
    staticRate: staticRateFieldOf(attr.staticRate ?? 0),
    ...(route === undefined
      ? {}
      : {
          grhPresent: 1,
          sourceGidIndex: route.sgidIndex,
          hopLimit: route.hopLimit,
          trafficClass: route.trafficClass,
          flowLabel: route.flowLabel,
          destinationGid: route.dgid,
        }),
  });
  return { context, pd, attr, addressVector: vector, destinationMac };
}

/** Frees nothing (ibv_destroy_ah). */
export async function destroyAh(_ah: IbvAh): Promise<void> {}
