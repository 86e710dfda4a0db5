import { describe, expect, it } from 'vitest';
import { IbtaState } from './ibta-state.ts';

describe('IbtaState', () => {
  it('IBTA 9.7.2: counts PSNs around at 24 bits when sending starts at 0', () => {
    const state = new IbtaState();
    state.startSending(0);
    expect([state.nextPsn, state.unsentPsn, state.awaitedPsn, state.lastAckedPsn]).toEqual([
      0, 0, 0xff_ffff, 0xff_ffff,
    ]);
  });

  it('keeps the two directions apart', () => {
    const state = new IbtaState();
    state.startReceiving(7);
    state.startSending(9);
    expect([state.expectedPsn, state.unansweredPsn, state.nextPsn, state.lastAckedPsn]).toEqual([7, 7, 9, 8]);
  });

  it('begins without a missing response, an answered READ or a limit of credits', () => {
    const state = new IbtaState();
    state.startSending(9);
    Object.assign(state, { missingPsn: 3, answeredPsn: 4, ssn: 5, ssnLimit: 6, msn: 7, hasNakSent: 1 });
    state.begin();
    const { missingPsn, answeredPsn, ssn, ssnLimit, msn, hasNakSent, nextPsn } = state;
    expect([missingPsn, answeredPsn, ssn, ssnLimit, msn, hasNakSent, nextPsn]).toEqual([
      -1, -1, 0, -1, 0, 0, 0,
    ]);
  });
});
