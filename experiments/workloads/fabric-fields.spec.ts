/** Transports that a fabric's messages cannot have. */
import { expect, it } from 'vitest';
import { ConfigurationError } from '../../base/index.ts';
import { checkedFabricWorkload, fabricArgsOf } from './fabric-fields.ts';

const argsOf = (fields: object) =>
  fabricArgsOf(checkedFabricWorkload({ test: 'incast', size: 64, ...fields }), [[0, 1, 2]]);

it.each([
  [{ connection: 'UD' }, 'connection is "UD", expected left out with verb write'],
  [{ connection: 'XRC', verb: 'read' }, 'connection is "XRC", expected left out with verb read'],
  [{ useSrq: true }, 'useSrq is true, expected left out with verb write'],
  [{ useSrq: true, verb: 'send', connection: 'XRC' }, 'expected left out with connection XRC'],
  [{ useSrq: true, verb: 'send', connection: 'UD' }, 'expected left out with connection UD'],
  [{ size: 4097, verb: 'send', connection: 'UD' }, 'size is 4097, expected at most the MTU, 4096'],
  [{ connection: 'UC', verb: 'send' }, 'connection is "UC", expected one of RC, XRC, UD'],
  [{ test: 'all-reduce', connection: 'RC' }, 'connection is "RC", expected left out for an all-reduce'],
])('rejects %j', (fields, message) => {
  expect(() => argsOf(fields)).toThrow(ConfigurationError);
  expect(() => argsOf(fields)).toThrow(message);
});

it('leaves the transport of SENDs to RC, and keeps the one that is named', () => {
  expect(argsOf({ verb: 'send' })).not.toHaveProperty('connection');
  expect(argsOf({ verb: 'send', connection: 'UD' })).toMatchObject({ verb: 'send', connection: 'UD' });
  expect(argsOf({ verb: 'send', useSrq: true })).toMatchObject({ usesSrq: true });
});
