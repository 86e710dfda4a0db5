/** MPT entries: regions and windows of memory. Source: interface sheet 5.4. */
import { indexFormOfKey, keyOfIndexForm, MptStatus, mpt } from '../../../abi/index.ts';
import { addressAt, addressTopAt, putAddress } from '../../../base/index.ts';
import type { KeyFormat } from '../host-interface/index.ts';
import {
  type KeyRecord,
  KeyState,
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
} from '../memory/index.ts';

const f = mpt.fields;
const startPlace = f.startAddress.wordOffset;

const rightFields = [
  [f.localReadEnabled, RIGHT_LOCAL_READ],
  [f.localWriteEnabled, RIGHT_LOCAL_WRITE],
  [f.remoteReadEnabled, RIGHT_REMOTE_READ],
  [f.remoteWriteEnabled, RIGHT_REMOTE_WRITE],
  [f.atomicEnabled, RIGHT_REMOTE_ATOMIC],
] as const;

export const mptFormat: KeyFormat = {
  entryBytes: mpt.sizeBytes,

  load(view, at, record) {
    record.state = stateOf(f.status.get(view, at));
    record.key = keyOfIndexForm(f.keyIndexForm.get(view, at));
    record.pd = f.pd.get(view, at);
    record.rights = rightsAt(view, at);
    record.isRegion = f.isRegion.get(view, at) === 1;
    record.isPhysical = f.isPhysical.get(view, at) === 1;
    record.isOnDemand = f.isOnDemand.get(view, at) === 1;
    record.start = addressAt(view, at + startPlace);
    record.startTop = addressTopAt(view, at + startPlace);
    record.lengthBytes = f.lengthBytes.getNumber(view, at);
    record.translationOffset = f.mttAddress.get(view, at);
    record.translationCount = f.mttEntries.get(view, at);
    record.logPageBytes = f.logPageSize.get(view, at);
    record.hasFirstByteOffset = f.firstByteOffsetEnabled.get(view, at) === 1;
    record.firstByteOffset = f.firstByteOffset.get(view, at);
    record.isOfQp = f.isBoundToQp.get(view, at) === 1;
    record.boundQpn = f.boundQpn.get(view, at);
    record.regionKey = f.lkey.get(view, at);
    record.boundWindows = f.boundWindows.get(view, at);
    record.allowsBinding = f.bindEnabled.get(view, at) === 1;
    record.allowsFastRegister = f.fastRegisterEnabled.get(view, at) === 1;
    record.allowsRemoteFastRegister = f.fastRegisterRemoteAccess.get(view, at) === 1;
    record.allowsLocalInvalidate = f.localInvalidateEnabled.get(view, at) === 1;
    record.allowsRemoteInvalidate = f.remoteInvalidateEnabled.get(view, at) === 1;
  },

  store(view, at, record) {
    storeState(view, at, record.state);
    f.keyIndexForm.set(view, at, indexFormOfKey(record.key));
    for (const [field, right] of rightFields) field.set(view, at, (record.rights & right) === 0 ? 0 : 1);
    putAddress(view, at + startPlace, record.start, record.startTop);
    storeLength(view, at, record);
    f.mttAddress.set(view, at, record.translationOffset);
    f.logPageSize.set(view, at, record.logPageBytes);
    f.firstByteOffsetEnabled.set(view, at, record.hasFirstByteOffset ? 1 : 0);
    f.firstByteOffset.set(view, at, record.firstByteOffset);
    f.boundQpn.set(view, at, record.boundQpn);
    f.lkey.set(view, at, record.regionKey);
    f.boundWindows.set(view, at, record.boundWindows);
  },
};

function stateOf(status: number): KeyState {
  if (status === MptStatus.VALID) return KeyState.VALID;
  return status === MptStatus.FREE ? KeyState.FREE : KeyState.SOFTWARE;
}

/** Stores the state of a key; entries that software owns keep their status, which has several values. */
function storeState(view: DataView, at: number, state: KeyState): void {
  if (state === KeyState.VALID) f.status.set(view, at, MptStatus.VALID);
  else if (state === KeyState.FREE) f.status.set(view, at, MptStatus.FREE);
}

/** Leaves an unchanged length as it is: above 2^53 a number does not hold all of its bits. */
function storeLength(view: DataView, at: number, { lengthBytes }: KeyRecord): void {
  if (f.lengthBytes.getNumber(view, at) !== lengthBytes) f.lengthBytes.setNumber(view, at, lengthBytes);
}

function rightsAt(view: DataView, at: number): number {
  let rights = 0;
  for (const [field, right] of rightFields) rights |= field.get(view, at) * right;
  return rights;
}
