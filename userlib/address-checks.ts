/** The numbers of an address (ibv_ah_attr), as the address vector and the address path of a QP take them. */
import type { AhAttr } from '../driver/index.ts';
import { checkArguments, uint8Max, uint16Max } from './numbers.ts';
import { VerbsError } from './verbs-error.ts';

/** A service level has 4 bits, source path bits 7, a GID index 7, a flow label 20 (interface sheet 5.1.1, 6.3). */
const serviceLevelMax = 15;
const pathBitsMax = 127;
const gidIndexMax = 127;
const flowLabelMax = 0xf_ffff;
const gidBytes = 16;

/** @throws VerbsError EINVAL for a number that its field cannot hold */
export function checkAddress(verbName: string, attr: AhAttr): void {
  const { dlid, sl = 0, srcPathBits = 0, staticRate = 0, isGlobal = 0, portNum, grh } = attr;
  checkArguments(
    verbName,
    ['dlid', dlid, uint16Max],
    ['sl', sl, serviceLevelMax],
    ['srcPathBits', srcPathBits, pathBitsMax],
    ['staticRate', staticRate, uint8Max],
    ['isGlobal', isGlobal, 1],
    ['portNum', portNum, uint8Max],
  );
  if (isGlobal === 0) return;
  if (grh === undefined)
    throw new VerbsError(verbName, 'EINVAL', 'grh is left out, expected one with isGlobal 1');
  checkArguments(
    verbName,
    ['bytes of dgid', grh.dgid.length, gidBytes],
    ['flowLabel', grh.flowLabel, flowLabelMax],
    ['sgidIndex', grh.sgidIndex, gidIndexMax],
    ['hopLimit', grh.hopLimit, uint8Max],
    ['trafficClass', grh.trafficClass, uint8Max],
  );
  if (grh.dgid.length < gidBytes)
    throw new VerbsError(verbName, 'EINVAL', `bytes of dgid is ${grh.dgid.length}, expected ${gidBytes}`);
}
