/** Request and reply of MPA. Expected bytes are the captures' (reference/wire/README.md) and those of RFC 5044, 7.1.1 and RFC 6581, 9 by hand. */
import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/index.ts';
import {
  agreementOfReply,
  checkRequest,
  concludeReply,
  encodeMpaFrame,
  IwarpError,
  type MpaFrame,
  type MpaParameters,
  parseMpaFrame,
  ReadyMessage,
  replyOf,
  requestOf,
} from './index.ts';

const request = '4d504120494420526571204672616d65';
const reply = '4d504120494420526570204672616d65';
const none = new Uint8Array(0);

const plain: MpaParameters = {
  revision: 2,
  wantsMarkers: false,
  canSendMarkers: true,
  wantsCrc: true,
  isPeerToPeer: false,
  readyKinds: ReadyMessage.WRITE | ReadyMessage.READ,
  inboundReads: 4,
  outboundReads: 4,
  inboundReadsMax: 4,
};

function frameOf(hex: string, isReply: boolean): MpaFrame {
  const parsed = parseMpaFrame(fromHex(hex), isReply);
  if (parsed.kind !== 'frame') throw new Error(parsed.kind);
  return parsed.frame;
}

/** Both frames of a connection, and what each side makes of them. */
function connect(initiator: MpaParameters, responder: MpaParameters) {
  const asked = requestOf(initiator, none);
  const answered = replyOf(responder, asked, 'accept', none);
  return {
    asked: toHex(encodeMpaFrame(asked)).slice(32),
    answered: toHex(encodeMpaFrame(answered)).slice(32),
    result: concludeReply(initiator, asked, answered),
    passive: agreementOfReply(responder, asked, answered),
  };
}

describe('a request or reply', () => {
  it('siw: is that of perftest with CRC, 4 READs each way', () => {
    expect(toHex(encodeMpaFrame(requestOf(plain, none)))).toBe(`${request}5002000400040004`);
  });

  it('siw: in peer-to-peer mode lists WRITE and READ, and the reply chooses WRITE', () => {
    const { asked, answered, result, passive } = connect(
      { ...plain, isPeerToPeer: true },
      { ...plain, readyKinds: ReadyMessage.WRITE },
    );
    expect([asked, answered]).toEqual(['500200048004c004', '5002000480048004']);
    expect(result).toMatchObject({ kind: 'agreed', agreement: { ready: ReadyMessage.WRITE } });
    expect(passive.ready).toBe(ReadyMessage.WRITE);
  });

  it('RFC 5044, 7.1.1: of revision 1 has no enhanced data', () => {
    const own = { ...plain, revision: 1, wantsMarkers: true };
    expect(toHex(encodeMpaFrame(requestOf(own, fromHex('abcd'))))).toBe(`${request}c0010002abcd`);
    expect(frameOf(`${request}c0010002abcd`, false)).toMatchObject({
      wantsMarkers: true,
      wantsCrc: true,
      enhanced: undefined,
      privateData: fromHex('abcd'),
    });
  });

  it('RFC 6581, 6: has private data after the enhanced data', () => {
    const { enhanced, privateData } = frameOf(`${reply}10020006c00340050102`, true);
    expect(enhanced).toEqual({
      isPeerToPeer: true,
      readyKinds: ReadyMessage.SEND | ReadyMessage.READ,
      inboundReads: 3,
      outboundReads: 5,
    });
    expect(toHex(privateData)).toBe('0102');
  });

  it('RFC 6581, 9: has no ready-to-receive kinds without peer-to-peer mode', () => {
    expect(frameOf(`${reply}100200044003c005`, true).enhanced?.readyKinds).toBe(ReadyMessage.NONE);
  });

  it('RFC 5044, 7.1.1: ignores reserved flags, and S in revision 1', () => {
    expect(frameOf(`${request}5f01000400040004`, false)).toMatchObject({ enhanced: undefined });
    expect(frameOf(`${request}0f010000`, false)).toMatchObject({ wantsCrc: false, isRejected: false });
  });

  it.each([
    ['a reply where a request is due', `${reply}00010000`],
    ['other bytes', 'ff'],
    ['more than 512 bytes of private data', `${request}00010201`],
    ['enhanced data that the private data has no room for', `${request}10020003000000`],
  ])('RFC 5044, 8: is not valid with %s', (_what, hex) => {
    expect(parseMpaFrame(fromHex(hex), false).kind).toBe('invalid');
  });

  it('RFC 5044, 7.1.2: is awaited until all of it has arrived', () => {
    const whole = fromHex(`${request}5002000400040004`);
    for (let bytes = 0; bytes < whole.length; bytes++)
      expect(parseMpaFrame(whole.subarray(0, bytes), false).kind).toBe('incomplete');
    expect(parseMpaFrame(fromHex(`${request}5002000400040004aabb`), false)).toMatchObject({
      lengthBytes: 24,
    });
  });
});

describe('the agreement', () => {
  it('RFC 5044, 7.1: has CRCs if either side wants them, and markers as each receiver wants', () => {
    const { result, passive } = connect(
      { ...plain, wantsCrc: false, wantsMarkers: true },
      { ...plain, wantsCrc: true },
    );
    expect(result).toMatchObject({
      agreement: { usesCrc: true, sendsMarkers: false, receivesMarkers: true },
    });
    expect(passive).toMatchObject({ usesCrc: true, sendsMarkers: true, receivesMarkers: false });
    const without = connect({ ...plain, wantsCrc: false }, { ...plain, wantsCrc: false });
    expect(without.passive.usesCrc).toBe(false);
  });

  it('RFC 6581, 9.1: limits the ORD of each side to the IRD of the other', () => {
    const { result, passive } = connect(
      { ...plain, inboundReads: 2, outboundReads: 16, inboundReadsMax: 2 },
      { ...plain, inboundReads: 8, outboundReads: 9 },
    );
    expect(result).toMatchObject({ kind: 'agreed', agreement: { inboundReads: 2, outboundReads: 8 } });
    expect(passive).toMatchObject({ inboundReads: 8, outboundReads: 2 });
  });

  it('RFC 6581, 9.1: leaves ORD as it is if IRD is not negotiated', () => {
    const asked = requestOf(plain, none);
    const answered = frameOf(`${reply}500200043fff3fff`, true);
    expect(concludeReply(plain, asked, answered)).toMatchObject({
      kind: 'agreed',
      agreement: { inboundReads: 4, outboundReads: 4 },
    });
  });

  it('RFC 6581, 8: ends with code 6 if the responder wants more READs outstanding than can be served', () => {
    const asked = requestOf(plain, none);
    const answered = frameOf(`${reply}5002000400040005`, true);
    expect(concludeReply(plain, asked, answered)).toMatchObject({ kind: 'terminate', error: 0x2006 });
    expect(concludeReply({ ...plain, inboundReadsMax: 8 }, asked, answered)).toMatchObject({
      kind: 'agreed',
      agreement: { inboundReads: 5 },
    });
  });

  it('RFC 6581, 8: ends with code 7 without a common ready-to-receive message; the reply still lists one', () => {
    const { answered, result, passive } = connect(
      { ...plain, isPeerToPeer: true, readyKinds: ReadyMessage.READ },
      { ...plain, readyKinds: ReadyMessage.SEND },
    );
    expect(answered).toBe('50020004c0040004');
    expect(result).toMatchObject({ kind: 'terminate', error: IwarpError.MPA_NO_COMMON_READY });
    expect(passive.ready).toBe(ReadyMessage.NONE);
  });

  it('RFC 6581, 4: is of revision 1 with an initiator of revision 1', () => {
    const { answered, passive } = connect({ ...plain, revision: 1 }, plain);
    expect(answered).toBe('40010000');
    expect(passive).toMatchObject({ revision: 1, ready: ReadyMessage.NONE });
  });

  it('RFC 5044, 7.1.2: ends with a rejection that may have private data', () => {
    const asked = requestOf(plain, none);
    const rejected = replyOf(plain, asked, 'reject', fromHex('77'));
    expect(toHex(encodeMpaFrame(rejected))).toBe(`${reply}700200050004000477`);
    expect(concludeReply(plain, asked, rejected)).toEqual({ kind: 'rejected', privateData: fromHex('77') });
  });

  it.each([
    ['a revision of the future', { revision: 3 }, 'close'],
    ['revision 0 of the RDMA Consortium', { revision: 0 }, 'close'],
    ['markers that cannot be sent', { wantsMarkers: true }, 'reject'],
    ['all that is known', {}, 'accepted'],
  ] as const)('RFC 5044, 7.1.2: of a request with %s', (_what, change, check) => {
    const asked = { ...requestOf(plain, none), ...change };
    expect(checkRequest({ ...plain, canSendMarkers: false }, asked)).toBe(check);
  });

  it('RFC 5044, 7.1.2: ends with a reply of another revision, or with markers that cannot be sent', () => {
    const asked = requestOf(plain, none);
    const older = { ...replyOf(plain, asked, 'accept', none), revision: 1 };
    expect(concludeReply(plain, asked, older).kind).toBe('close');
    const marked = { ...replyOf(plain, asked, 'accept', none), wantsMarkers: true };
    expect(concludeReply({ ...plain, canSendMarkers: false }, asked, marked).kind).toBe('close');
  });
});
