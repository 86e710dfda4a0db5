/** Atomic requests of RFC 7306 from requests of this side, each with an identifier, and the response that is being sent. */
import { WqeOpcode } from '../../../../abi/index.ts';
import {
  AtomicOperation,
  AtomicRequest,
  AtomicResponse,
  type Operand,
} from '../../../../protocol/iwarp/index.ts';
import type { SendRecord } from '../../objects/index.ts';

const { ATOMIC_CS, MASKED_ATOMIC_CS, MASKED_ATOMIC_FA } = WqeOpcode;
/** Both words of a mask of all bits. */
const ALL_BITS = 0xffff_ffff;

export class AtomicWriter {
  readonly response = new AtomicResponse();
  readonly #request = new AtomicRequest();
  #nextId = 0;

  /** The same object each time. An add without boundaries has the mask 0, a swap without masks compares and replaces all bits. */
  requestOf({ opcode, operands, remoteKey, remoteAddress, remoteAddressTop }: SendRecord): AtomicRequest {
    const request = this.#request;
    const isSwap = opcode === ATOMIC_CS || opcode === MASKED_ATOMIC_CS;
    request.operation = isSwap ? AtomicOperation.COMPARE_SWAP : AtomicOperation.FETCH_ADD;
    request.requestId = this.#nextId;
    this.#nextId = (this.#nextId + 1) >>> 0;
    request.steeringTag = remoteKey;
    request.offset = remoteAddress;
    request.offsetTop = remoteAddressTop;
    setWords(request.data, operands[0]!, operands[1]!);
    setWords(request.compareData, isSwap ? operands[2]! : 0, isSwap ? operands[3]! : 0);
    if (opcode === MASKED_ATOMIC_FA) setWords(request.dataMask, operands[2]!, operands[3]!);
    else if (opcode === MASKED_ATOMIC_CS) setWords(request.dataMask, operands[4]!, operands[5]!);
    else setWords(request.dataMask, isSwap ? ALL_BITS : 0, isSwap ? ALL_BITS : 0);
    if (opcode === MASKED_ATOMIC_CS) setWords(request.compareMask, operands[6]!, operands[7]!);
    else setWords(request.compareMask, isSwap ? ALL_BITS : 0, isSwap ? ALL_BITS : 0);
    return request;
  }
}

function setWords(operand: Operand, low: number, high: number): void {
  operand.low = low >>> 0;
  operand.high = high >>> 0;
}
