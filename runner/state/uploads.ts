import type { Random } from '../../core/runtime.ts';

const NAME = /^\.berth-upload-[0-9a-f]{16}$/;

/** Returns a name for what is being written from outside, or deleted. */
export const uploadName = (random: Random): string => `.berth-upload-${random.bytes(8).toString('hex')}`;

/** Reports whether a name is such a one: neither a state nor the artifacts have what is called so. */
export const isUpload = (name: string): boolean => NAME.test(name);
