import { expect, it } from 'vitest';
import { i386Linux, registeredBytes } from './i386-calls.ts';

const verbs = 0xc018_1b01;
const requestAddress = 0x1000;
const inputAddress = 0x2000;

/** Memory with a request of the verbs interface: device, INVOKE_WRITE, its command and its parameters. */
function requestOf(command: number, object = 0, method = 0): Uint8Array {
  const memory = new Uint8Array(0x3000);
  const view = new DataView(memory.buffer);
  const set16 = (offset: number, value: number): void => view.setUint16(requestAddress + offset, value, true);
  set16(2, object);
  set16(4, method);
  set16(6, 2);
  set16(24, 0);
  view.setUint32(requestAddress + 24 + 8, inputAddress, true);
  set16(24 + 16, 2);
  view.setUint32(requestAddress + 24 + 16 + 8, command, true);
  // struct ib_uverbs_reg_mr: response, start, length.
  view.setUint32(inputAddress + 16, 65_536, true);
  return memory;
}

const nameOf = (number: number, request: number, memory: Uint8Array): string =>
  i386Linux.nameOf({
    number,
    parameters: [3, request, requestAddress],
    bytesAt: (address, lengthBytes) =>
      address + lengthBytes <= memory.length ? memory.slice(address, address + lengthBytes) : undefined,
  });

it('names system calls by their number in the i386 table', () => {
  const memory = requestOf(0);
  expect([3, 4, 20, 54, 168, 252, 393].map((number) => nameOf(number, 0, memory))).toEqual([
    ...['read', 'write', 'getpid', 'ioctl', 'poll', 'exit_group', 'semget'],
  ]);
  expect(nameOf(9999, 0, memory)).toBe('call 9999');
});

it('names what the verbs interface is requested, a registration with its bytes', () => {
  expect(nameOf(54, verbs, requestOf(9))).toBe('ioctl reg_mr 65536 bytes');
  expect(nameOf(54, verbs, requestOf(26))).toBe('ioctl modify_qp');
  expect(nameOf(54, verbs, requestOf(0x8000_0001))).toBe('ioctl ex_query_device');
  expect(nameOf(54, verbs, requestOf(0, 7, 1))).toBe('ioctl dereg_mr');
  expect(nameOf(54, verbs, requestOf(0, 3, 0))).toBe('ioctl cq method 0');
  expect(nameOf(54, 0x5401, requestOf(9))).toBe('ioctl');
  // Absent memory.
  expect(nameOf(54, verbs, new Uint8Array(16))).toBe('ioctl');
});

it('reads the bytes of a registration out of its name', () => {
  expect(['ioctl reg_mr 65536 bytes', 'ioctl dereg_mr', undefined].map(registeredBytes)).toEqual([
    ...[65_536, undefined, undefined],
  ]);
});
