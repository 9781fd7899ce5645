import type { AgentSpec } from '../../core/frames/messages.ts';
import { CommandDriver } from './command.ts';
import type { Driver, DriverOptions } from './driver.ts';
import { ServerDriver } from './server.ts';
import { ShellDriver } from './shell.ts';
import { ToolsDriver } from './tools.ts';

const DRIVERS: Record<AgentSpec['driver'], new (options: DriverOptions) => Driver> = {
  Command: CommandDriver,
  Server: ServerDriver,
  Shell: ShellDriver,
  Tools: ToolsDriver,
};

export function isDriver(name: unknown): name is AgentSpec['driver'] {
  return typeof name === 'string' && Object.hasOwn(DRIVERS, name);
}

/** Creates the driver that the session's agent names. */
export function makeDriver(options: DriverOptions): Driver {
  return new DRIVERS[options.facts.agent.driver](options);
}
