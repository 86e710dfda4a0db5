import { describe, expect, it } from 'vitest';
import { blocksOf, CreditReceiver, CreditSender } from './link-credits.ts';

describe('link-level credits', () => {
  it('IBTA 7.9.4: are blocks of 64 bytes, rounded up', () => {
    expect([1, 64, 65, 2074].map(blocksOf)).toEqual([1, 1, 2, 33]);
  });

  it('count from the instant after their arrival', () => {
    const sender = new CreditSender();
    sender.limitReceived(4, 100);
    expect(sender.canSend(4, 100)).toBe(false);
    expect(sender.canSend(4, 101)).toBe(true);
    expect(sender.canSend(5, 101)).toBe(false);
    // After a second limit at a later instant, the first one remains valid at that instant.
    sender.limitReceived(8, 200);
    expect(sender.canSend(4, 200)).toBe(true);
    expect(sender.canSend(5, 200)).toBe(false);
    expect(sender.canSend(8, 201)).toBe(true);
  });

  it('IBTA 7.9.4: promise free blocks, not the size of the buffer', () => {
    const receiver = new CreditReceiver(10, 2);
    expect(receiver.takeCreditLimit()).toBe(10);
    expect(receiver.received(6)).toBe(true);
    expect(receiver.freed(1)).toBe(false);
    expect(receiver.freed(1)).toBe(true);
    // 6 blocks received, 4 of them held: 6 more are free after the 6 received.
    expect(receiver.takeCreditLimit()).toBe(12);
    expect(receiver.freed(1)).toBe(false);
    expect(receiver.received(8)).toBe(false);
  });

  it('IBTA 7.9.4: wrap at 4096', () => {
    const sender = new CreditSender();
    const receiver = new CreditReceiver(2048, 1);
    let nowPs = 0;
    for (let packet = 0; packet < 100; packet++) {
      sender.limitReceived(receiver.takeCreditLimit(), nowPs++);
      expect(sender.canSend(2048, nowPs)).toBe(true);
      expect(sender.canSend(2049, nowPs)).toBe(false);
      sender.sent(1000);
      expect(receiver.received(1000)).toBe(true);
      receiver.freed(1000);
      expect(receiver.synchronize(sender.totalBlocksSent)).toBe(true);
    }
  });

  it('IBTA 7.9.4: are corrected by the sender’s count after packets were lost', () => {
    const sender = new CreditSender();
    const receiver = new CreditReceiver(10, 1);
    sender.limitReceived(receiver.takeCreditLimit(), 0);
    sender.sent(7);
    expect(receiver.takeCreditLimit()).toBe(10);
    expect(receiver.synchronize(sender.totalBlocksSent)).toBe(false);
    expect(receiver.takeCreditLimit()).toBe(17);
  });
});
