/** The MAD of a trap of a switch: Subn(Trap) with the attribute Notice. Source: IBTA volume 1, 13.4.8, 14.2.5.1. */
import {
  MadClass,
  MadMethod,
  mad,
  madBytes,
  NodeType,
  notice,
  SmpAttribute,
  smpDataOffset,
} from '../../../abi/index.ts';

export interface Trap {
  /** One of NoticeType. */
  readonly type: number;
  readonly trapNumber: number;
  /** As the trap defines them. */
  readonly details: Uint8Array;
}

/** The MAD, which has a transaction ID of its own. */
export function trapMad(
  { type, trapNumber, details }: Trap,
  issuerLid: number,
  transactionId: bigint,
): Uint8Array {
  const bytes = new Uint8Array(madBytes);
  const header = { baseVersion: 1, managementClass: MadClass.SUBN_LID_ROUTED, classVersion: 1 };
  const attribute = { attributeId: SmpAttribute.NOTICE, transactionId };
  mad.encodeInto({ ...header, ...attribute, method: MadMethod.TRAP }, bytes);
  notice.encodeInto(
    { isGeneric: 1, type, producerType: NodeType.SWITCH, trapNumber, issuerLid, details },
    bytes.subarray(smpDataOffset),
  );
  return bytes;
}
