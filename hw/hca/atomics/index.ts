/** Interface of this room: see README.md. */
export {
  ATOMIC_ADD,
  ATOMIC_BYTES,
  ATOMIC_OPERAND_WORDS,
  ATOMIC_SWAP,
  type AtomicOperation,
  AtomicUnit,
  type AtomicUnitSetup,
} from './atomic-unit.ts';
