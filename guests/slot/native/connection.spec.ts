import { closeSync, fstatSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sendWith } from '../client/socket.ts';
import { openDescriptorCount } from '../testing/bench.ts';
import { socketPair } from '../testing/socket-pair.ts';
import { CONNECTION_BROKEN, Connection, END_OF_STREAM, NOTHING_YET } from './connection.ts';
import { nativeLibrary, nativeUnavailableReason } from './library.ts';
import { createEventfd } from './poll.ts';

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('a connection', () => {
  let before = 0;
  let peer = -1;
  let connection: Connection;
  let buffer: Uint8Array<ArrayBuffer>;
  let address = 0;
  const sent: number[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    const [near, far] = socketPair();
    connection = new Connection(near, 4);
    peer = far;
    buffer = new Uint8Array(new ArrayBuffer(65_536));
    address = nativeLibrary().addressOf(buffer.buffer);
  });

  afterEach(() => {
    connection.close();
    if (peer >= 0) closeSync(peer);
    for (const descriptor of sent.splice(0)) closeSync(descriptor);
    expect(openDescriptorCount()).toBe(before);
  });

  const anEventfd = (): number => {
    const descriptor = createEventfd();
    sent.push(descriptor);
    return descriptor;
  };
  const receive = (): number => connection.receive(address, buffer.length);
  const received = (): number[] => [...connection.descriptors.subarray(0, connection.descriptorCount)];
  const closeReceived = (): void => {
    for (const descriptor of received()) closeSync(descriptor);
  };

  it('reports that no bytes are available, and later that the peer has closed', () => {
    expect(receive()).toBe(NOTHING_YET);
    closeSync(peer);
    peer = -1;
    expect(receive()).toBe(END_OF_STREAM);
  });

  it('joins sends without descriptors in one read', () => {
    sendWith(peer, Buffer.from('one'));
    sendWith(peer, Buffer.from('two'));
    expect(receive()).toBe(6);
    expect(Buffer.from(buffer.subarray(0, 6)).toString()).toBe('onetwo');
  });

  it('ends a read after the send that carried descriptors (Linux af_unix: the rule on which the message stream relies)', () => {
    sendWith(peer, Buffer.from('plain'));
    sendWith(peer, Buffer.from('with'), [anEventfd()]);
    sendWith(peer, Buffer.from('after'));
    expect(receive()).toBe('plainwith'.length);
    expect(received()).toHaveLength(1);
    closeReceived();
    expect(receive()).toBe('after'.length);
    expect(received()).toHaveLength(0);
  });

  it('never joins the descriptors of two sends', () => {
    sendWith(peer, Buffer.from('a'), [anEventfd()]);
    sendWith(peer, Buffer.from('b'), [anEventfd(), anEventfd()]);
    expect(receive()).toBe(1);
    expect(received()).toHaveLength(1);
    closeReceived();
    expect(receive()).toBe(1);
    expect(received()).toHaveLength(2);
    closeReceived();
  });

  it('has the descriptors with the first byte of their send, for any read size', () => {
    sendWith(peer, Buffer.from('abcdef'), [anEventfd()]);
    expect(connection.receive(address, 2)).toBe(2);
    expect(received()).toHaveLength(1);
    closeReceived();
    expect(connection.receive(address, 2)).toBe(2);
    expect(received()).toHaveLength(0);
  });

  it('receives descriptors that close on exec', () => {
    sendWith(peer, Buffer.from('x'), [anEventfd()]);
    receive();
    const F_GETFD = 1;
    const FD_CLOEXEC = 1;
    expect(nativeLibrary().fcntl(received()[0]!, F_GETFD, 0)).toBe(FD_CLOEXEC);
    expect(fstatSync(received()[0]!).ino).toBe(fstatSync(sent[0]!).ino);
    closeReceived();
  });

  it('reports when more descriptors arrive than it accepts, and leaks none', () => {
    sendWith(peer, Buffer.from('x'), [anEventfd(), anEventfd(), anEventfd(), anEventfd(), anEventfd()]);
    expect(receive()).toBe(1);
    expect(connection.hasLostDescriptors).toBe(true);
    expect(received()).toHaveLength(4);
    closeReceived();
    sendWith(peer, Buffer.from('y'));
    receive();
    expect(connection.hasLostDescriptors).toBe(false);
  });

  it('accepts one descriptor more than an odd limit instead of losing it: control messages are padded', () => {
    connection.close();
    closeSync(peer);
    const [near, far] = socketPair();
    connection = new Connection(near, 3);
    peer = far;
    sendWith(peer, Buffer.from('x'), [anEventfd(), anEventfd(), anEventfd(), anEventfd()]);
    receive();
    expect(received()).toHaveLength(4);
    closeReceived();
  });

  it('sends more than the socket holds once the peer reads, and gives up on a peer that does not read', () => {
    const startMs = performance.now();
    const large = new ArrayBuffer(2 ** 22);
    expect(connection.sendAll(nativeLibrary().addressOf(large), large.byteLength, 50)).toBe(false);
    expect(performance.now() - startMs).toBeLessThan(5000);
  });

  it('distinguishes a send to a closed peer from success, without a signal', () => {
    closeSync(peer);
    peer = -1;
    expect(connection.sendAll(address, 10, 1000)).toBe(false);
  });

  it('distinguishes a broken socket from an end', () => {
    connection.close();
    expect(receive()).toBe(CONNECTION_BROKEN);
  });
});
